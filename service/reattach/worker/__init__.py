"""The worker: runs agents' handlers under leases. Knows no web server and no viewer.

From the outside in: ``worker`` composes one process's worker, ``intake`` finds work, ``attempt`` carries one claimed run to its end or
hands it on, ``renewal`` keeps the leases from a thread of its own, ``hold`` says whether a run is still ours and whether its handler
must stop. What a handler is given: ``context`` (the `Run`), made of ``output`` and ``message`` (events), ``effects`` (tools) and
``waits`` (pauses); ``recall`` remembers what earlier passes already said. ``registry`` and ``outcome`` are plain vocabulary.

`Worker` is loaded when it is asked for: a module of agents needs no Redis client.
"""

from typing import TYPE_CHECKING, Any

from .context import Run
from .registry import Agents

if TYPE_CHECKING:
    from .worker import Worker

__all__ = ["Agents", "Run", "Worker"]


def __getattr__(name: str) -> Any:
    if name == "Worker":
        from .worker import Worker

        return Worker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

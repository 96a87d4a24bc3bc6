"""``reattach work``: a worker."""

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from types import ModuleType

import click
import msgspec

from ..core.settings import Settings
from ..store import Store
from ..worker import Agents, Worker
from .console import say, start_logs
from .folder import find_store
from .handshake import tell
from .help import Command
from .options import with_settings
from .signals import run, stop_signals


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker tells the process that started it, as one JSON line: that it takes work, or why it never will."""

    agents: tuple[str, ...] = ()
    error: str | None = None


@click.command(cls=Command, short_help="A worker alone, with your agents.")
@click.argument("agents", metavar="MODULE:AGENTS")
@click.option("--ready-fd", type=int, default=None, hidden=True, help="Where to tell that it takes work.")
@with_settings()
def work(settings: Settings, agents: str, ready_fd: int | None) -> None:
    """Run agents: take runs, work on them, hand them over when stopped.

    MODULE:AGENTS names a Python module, found from the current folder on, and the `Agents` in it.

        reattach work shop.agents:agents
        reattach work shop.agents:agents --redis redis://cache:6379/0 --concurrency 50

    Start as many as you like, anywhere; a worker that dies is replaced by the others. The first Ctrl-C (or SIGTERM) takes no new runs
    and gives those under way --grace seconds; the second hands them over now; the third ends at once. It listens nowhere: --host, --port
    and what else is the API's changes nothing here.
    """
    start_logs(settings, quiet=ready_fd is not None)
    try:
        found = load_agents(agents)
    except click.UsageError as e:
        if ready_fd is None:
            raise
        tell(ready_fd, msgspec.json.encode(Ready(error=e.message)))
        sys.exit(e.exit_code)
    run(_work(find_store(settings), found, ready_fd))


async def _work(settings: Settings, agents: Agents, ready_fd: int | None) -> None:
    store = await Store.open(settings)
    try:
        worker = Worker(store, agents, settings)
        with stop_signals(worker.stop, hurry=worker.stop):
            _announce(store, agents, ready_fd)
            await worker.run()
    finally:
        await store.close()


def _announce(store: Store, agents: Agents, ready_fd: int | None) -> None:
    if ready_fd is None:
        say("store", store.target.safe_url)
        say("worker", f"process {os.getpid()}, agents {', '.join(agents)}")
        return
    tell(ready_fd, msgspec.json.encode(Ready(agents=tuple(agents))))


def load_agents(name: str) -> Agents:
    """Import what ``MODULE:AGENTS`` names.

    Raises:
        click.UsageError: There is no such module or attribute, it is something else, or importing it failed.
    """
    module_name, attribute = _parts(name)
    module = _import(module_name)
    found: object = getattr(module, attribute, None)
    if not isinstance(found, Agents):
        others = [key for key, value in vars(module).items() if isinstance(value, Agents)]
        hint = f"did you mean {module_name}:{others[0]}?" if others else "it needs a line like: agents = Agents()"
        what = f"has no {attribute!r}" if found is None else f"has a {attribute!r} that is no reattach.Agents but {type(found).__name__}"
        raise click.UsageError(f"the module {module_name} {what}; {hint}")
    if not len(found):
        raise click.UsageError(f'{name} holds no agent: decorate a function with @{attribute}.agent("name")')
    return found


def check_module(name: str) -> None:
    """Look whether there can be such a module, without running a line of it: a mistyped name is told before anything is started.

    Raises:
        click.UsageError: ``MODULE:AGENTS`` has another form, or there is no such module or package.
    """
    top = _parts(name)[0].partition(".")[0]
    here = _look_here()
    if top not in sys.modules and importlib.util.find_spec(top) is None:
        raise _missing(top, here)


def _look_here() -> str:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    return here


def _missing(module: str | None, here: str) -> click.UsageError:
    return click.UsageError(f"there is no module {module}: neither in {here} nor installed")


def _parts(name: str) -> tuple[str, str]:
    module_name, _, attribute = name.partition(":")
    if not _is_module(module_name) or module_name.endswith(".py") or not attribute.isidentifier():
        stem = module_name.removeprefix("./").removesuffix(".py").replace("/", ".")
        like = f"{stem if _is_module(stem) else 'shop.agents'}:{attribute if attribute.isidentifier() else 'agents'}"
        raise click.UsageError(f"{name!r} does not name agents: give a module and a name in it, like {like}")
    return module_name, attribute


def _is_module(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _import(name: str) -> ModuleType:
    here = _look_here()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name is not None and f"{name}.".startswith(f"{e.name}."):
            raise _missing(e.name, here) from None
        raise click.UsageError(f"the module {name} cannot be imported{_where(e)}: {e}") from None
    except Exception as e:
        raise click.UsageError(f"the module {name} cannot be imported{_where(e)}: {type(e).__name__}: {e}") from None


def _where(error: Exception) -> str:
    """The line of the user's code that failed."""
    ours = (__file__, inspect.getfile(Agents))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename and f.filename not in ours]
    return f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""

"""Reattach: agent runs that outlive their connections.

What a module of agents needs is here: `Agents` registers handlers, `Run` is what a handler is given, the rest is what its calls return
and raise.
"""

from reattach.core.errors import (
    EffectFailed,
    EffectUnresolved,
    InvalidRequest,
    Nondeterminism,
    PayloadTooLarge,
    ReattachError,
)
from reattach.core.version import __version__
from reattach.worker.context import PastEvent, Run
from reattach.worker.message import Message
from reattach.worker.outcome import RunFailed
from reattach.worker.receipt import Receipt
from reattach.worker.registry import Agents

__all__ = [
    "Agents",
    "EffectFailed",
    "EffectUnresolved",
    "InvalidRequest",
    "Message",
    "Nondeterminism",
    "PastEvent",
    "PayloadTooLarge",
    "ReattachError",
    "Receipt",
    "Run",
    "RunFailed",
    "__version__",
]

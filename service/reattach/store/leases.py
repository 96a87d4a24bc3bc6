"""What passes between a worker and the store: deliveries, leases, and the answers to a worker's commands."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from ..core.receipt import Effect
from ..core.run import RunRecord


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """A queue entry that was handed to this consumer; not yet a lease."""

    run_id: str
    agent: str
    shard: str
    entry: str


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """One acquisition of a run. Its `fence` is new every time; whoever holds an older one can change nothing any more.

    `session` is the name of the run's session, if it has one: what is written under the lease goes into its log too.
    """

    run_id: str
    agent: str
    fence: str
    entry: str
    consumer: str
    attempt: int
    session: str | None = None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is ours now, with what earlier attempts left.

    Attributes:
        effects: Tool call id → what is recorded of it.
        answers: Wait id → the answer, as JSON text.
        resumed: Whether the run goes on after a wait (the same attempt) rather than starting an attempt.
    """

    lease: Lease
    record: RunRecord
    effects: Mapping[str, Effect]
    answers: Mapping[str, bytes]
    resumed: bool


class Renewal(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that was prolonged; a cancel version above 0 means the run shall stop."""

    cancel_version: int


class Appended(msgspec.Struct, frozen=True, kw_only=True):
    """The sequence after a write, and whether the run shall stop."""

    sequence: int
    cancel_version: int


class Intended(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate before a tool says.

    ``go``: run it. ``receipt`` / ``failed``: it ran; `effect` has what became of it. ``unresolved``: an owner died between
    intention and receipt; nobody may run it unasked; `sequence` is that of its ``tool.unresolved``. ``cancelled``: the run shall stop.
    """

    kind: Literal["go", "receipt", "failed", "unresolved", "cancelled"]
    effect: Effect | None
    sequence: int


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """How the run ended; `disposition` is set where a cancel request had been made."""

    state: str
    disposition: str | None
    sequence: int


class Parked(msgspec.Struct, frozen=True, kw_only=True):
    """``parked``: the lease is given up. ``answered``: the answer was there already. ``cancelled``: the run shall stop instead."""

    kind: Literal["parked", "answered", "cancelled"]
    value: bytes | None = None

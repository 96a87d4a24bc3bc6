"""The session: a long conversation of runs. Its facts, what a second run does to a first, and the bounds of its log."""

from typing import Final, Literal, get_args
from urllib.parse import quote

import msgspec

from .cursor import LogBounds
from .run import ACTIVE_STATES, RunRecord

Policy = Literal["parallel", "queue", "reject", "replace"]
POLICIES: Final[tuple[Policy, ...]] = get_args(Policy)
"""What becomes of a run that is created while another one of its session goes on: it starts at once; it starts when those before it have
ended; it is refused; it starts when those before it have been cancelled."""


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is made from. Metadata is JSON that was checked at the edge."""

    session_id: str
    tenant: str
    initiator: str
    policy: Policy = "parallel"
    metadata: bytes = b"{}"


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A session's facts, read at one instant. Times are milliseconds on the Redis server's clock.

    Attributes:
        name: In keys and cursors, see `core.ids`.
        session_id: The client's own name for it.
        initiator: Who made it, or its first run.
        sequence: How many events all its runs have written.
        earliest_sequence: The lowest from which all can be replayed; ``sequence + 1`` when none is left.
        open: Runs in it that may not have ended, in the order in which they began. Their records say whether they have.
    """

    name: str
    session_id: str
    tenant: str
    initiator: str
    policy: Policy
    metadata: bytes
    sequence: int
    earliest_sequence: int
    created_at: int
    last_activity_at: int
    open: tuple[str, ...]


def goes_on(record: RunRecord) -> bool:
    """Whether a run is active: it has not ended."""
    return record.state in ACTIVE_STATES


def session_bounds(record: SessionRecord) -> LogBounds:
    """What a session's log can replay. A session never ends by itself."""
    return LogBounds(
        sequence=record.sequence,
        earliest_sequence=record.earliest_sequence,
        state="active" if record.open else "idle",
        terminal=False,
        render="partial_message",
    )


def session_path(session_id: str) -> str:
    """Where a session is found over HTTP."""
    return f"/sessions/{quote(session_id, safe='')}"


def as_run(record: SessionRecord) -> RunRecord:
    """A session as an authorizer is asked about it: as a run of its initiator, about the whole tenant, without a `run_id`."""
    return RunRecord(
        run_id="",
        tenant=record.tenant,
        initiator=record.initiator,
        agent="",
        resource_scope=record.tenant,
        release_id="",
        state="running",
        sequence=record.sequence,
        created_at=record.created_at,
        last_activity_at=record.last_activity_at,
        session_id=record.session_id,
        session=record.name,
    )

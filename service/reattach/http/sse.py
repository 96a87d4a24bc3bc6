"""Control frames of an event stream. None of them carries an id, except a snapshot, which stands for all events up to its sequence.

Frames of stored events are made in `tail`, once for all viewers.
"""

import random
from typing import Final, Literal, Protocol

import msgspec

from ..core.event import event_id
from ..core.snapshot import Snapshot

CloseReason = Literal["drain", "lifetime", "unauthorized", "slow_consumer", "unavailable"]

KEEPALIVE: Final = b":\n\n"
"""A comment: moves no cursor, dispatches nothing, keeps proxies and phones awake."""

HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)
_RETRY_MS: Final = (1000, 3000)


class HasSequence(Protocol):
    """A snapshot of anything."""

    @property
    def sequence(self) -> int:
        """The place it is true at."""
        ...


def opening() -> bytes:
    """The first bytes of every stream: something for proxies to pass on, and a reconnection time that differs from client to client."""
    return b": reattach\nretry: %d\n\n" % random.randint(*_RETRY_MS)


def closing(reason: str) -> bytes:
    """What a stream says before the server ends it though its run goes on; one of `CloseReason`."""
    return b'event: stream.closing\ndata: {"reason":"%b"}\n\n' % reason.encode("ascii")


def session_frame(name: str, snapshot: HasSequence) -> bytes:
    """A session's snapshot in place of events that are no longer kept.

    Args:
        name: The session's name in cursors.
        snapshot: What ``GET /sessions/{session_id}`` answers.
    """
    encoded = msgspec.json.encode(snapshot)
    return b"id: %b:%d\nevent: session.snapshot\ndata: %b\n\n" % (name.encode("ascii"), snapshot.sequence, encoded)


def snapshot_frame(snapshot: Snapshot) -> bytes:
    """The snapshot in place of events that are no longer kept."""
    return b"id: %b\nevent: run.snapshot\ndata: %b\n\n" % (
        event_id(snapshot.run_id, snapshot.sequence).encode("ascii"),
        msgspec.json.encode(snapshot),
    )

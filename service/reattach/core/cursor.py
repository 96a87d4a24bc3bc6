"""Cursors: how they are read, and what each is worth against a run's log (contract, section 5)."""

import re
from typing import Any, Final, Literal

import msgspec

from .errors import CursorExpired, CursorRunMismatch, CursorSessionMismatch, FutureCursor, MalformedCursor
from .ids import ID_CHARACTER, is_session_name

MAX_SEQUENCE: Final = 2**53 - 1
"""Beyond this a sequence would no longer be exact in Lua or in a browser."""

_CURSOR = re.compile(rf"(?:(run_{ID_CHARACTER}{{26}}):)?(0|[1-9][0-9]{{0,15}})")
_SESSION_CURSOR = re.compile(rf"(?:(ses_{ID_CHARACTER}{{26}}):)?(0|[1-9][0-9]{{0,15}})")

Render = Literal["completed_message", "partial_message", "unknown_outcome", "operator_recovery"]
"""What a client that lost its place can show from the snapshot."""


class LogBounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a run's log can still replay, or a session's, whose state is ``active`` or ``idle``.

    Attributes:
        sequence: The latest event's.
        earliest_sequence: The lowest from which a replay folds to the snapshot; ``sequence + 1`` when no event is left.
        state: The run's state.
        terminal: Whether the run has ended.
        render: What a client that lost its place can show from the snapshot.
    """

    sequence: int
    earliest_sequence: int
    state: str
    terminal: bool
    render: Render


def parse_cursor(text: str, run_id: str) -> int:
    """Read a cursor given for a run: ``184`` or ``run_…:184``, nothing else. A session's are ``184`` and ``ses_…:184``.

    Args:
        text: The cursor.
        run_id: The run, or the session's name.

    Raises:
        MalformedCursor: It is neither form.
        CursorRunMismatch: It names another run; the answer is the same whether that run exists or not.
        CursorSessionMismatch: It names another session, likewise.
    """
    if is_session_name(run_id):
        return _parse_session(text, run_id)
    match = _CURSOR.fullmatch(text)
    if match is None or int(match[2]) > MAX_SEQUENCE:
        raise MalformedCursor("a cursor is a sequence (184) or an event id (run_…:184); leave it out to start from the beginning")
    if match[1] not in (None, run_id):
        raise CursorRunMismatch("the cursor names another run than the one asked for")
    return int(match[2])


def _parse_session(text: str, name: str) -> int:
    match = _SESSION_CURSOR.fullmatch(text)
    if match is None or int(match[2]) > MAX_SEQUENCE:
        raise MalformedCursor("a session's cursor is a sequence (184) or a frame's id (ses_…:184); leave it out to begin with the first")
    if match[1] not in (None, name):
        raise CursorSessionMismatch("the cursor names another session than the one asked for")
    return int(match[2])


def pick_cursor(headers: list[str], after: list[str], run_id: str) -> int:
    """Choose and read the cursor of a request: `Last-Event-ID` wins, since a browser keeps the old URL when it reconnects.

    An empty header is what a client that has seen no event may send: it is no cursor. An empty `?after=` is a client's mistake, which
    must not become a full replay.

    Args:
        headers: Every `Last-Event-ID` of the request.
        after: Every `after` of its query string.
        run_id: The run that was asked for, or the session's name.

    Raises:
        MalformedCursor: Two headers (or, without a header, two query values) that differ, or a cursor of neither form.
        CursorRunMismatch: It names another run.
        CursorSessionMismatch: It names another session.
    """
    given = set(headers)
    if given <= {""}:
        given = set(after)
    if len(given) > 1:
        raise MalformedCursor("two different cursors were given in one request")
    return parse_cursor(given.pop(), run_id) if given else 0


def judge(cursor: int, bounds: LogBounds, *, run_id: str, snapshot: str | None = None) -> None:
    """Decide whether a replay after `cursor` would fold to the snapshot.

    Args:
        cursor: The cursor.
        bounds: What can be replayed.
        run_id: The run, or the session's name.
        snapshot: Where the snapshot is; by default that of the run.

    Raises:
        FutureCursor: It is larger than the latest sequence.
        CursorExpired: Events after it that a fold needs are gone.
    """
    where = f"/agent-runs/{run_id}" if snapshot is None else snapshot
    facts: dict[str, Any] = {"latest_sequence": bounds.sequence, "state": bounds.state, "snapshot": where}
    if cursor > bounds.sequence:
        raise FutureCursor(f"the latest sequence is {bounds.sequence}", **facts)
    if cursor + 1 < bounds.earliest_sequence:
        raise CursorExpired(
            "events after this cursor are no longer kept; take the snapshot and go on from resume_after",
            earliest_sequence=bounds.earliest_sequence,
            resume_after=f"{run_id}:{bounds.sequence}",
            render=bounds.render,
            **facts,
        )

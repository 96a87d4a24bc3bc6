"""O09: an old cursor answered with a partial replay: only what a later event carries may be missing; all else is said, never skipped.

The trimming bound is exact: a live log is cut right behind the last event that a stored fold covers, and ``earliest_sequence`` is the
lowest sequence whose replay folds to the snapshot, read from the log itself.
"""

import asyncio
from typing import Any

import pytest

from reattach.core.event import Event
from reattach.core.fold import Fold
from reattach.store import Store

from ..support.admin import Admin
from ..support.calls import check_problem, new_run_id, snapshot
from ..support.client import Follower
from ..support.drive import Hand, claim, start
from ..support.service import Service
from ..support.stalled import Stalled
from ..support.waiting import wait_until

LAST, CHECKPOINT = 200, 150
CURSORS = [0, 10, 148, 149, 150, 151, 199, 200]


async def say(hand: Hand, count: int, *, size: int = 50) -> str:
    """Stream `count` words into the message ``m``; all of them."""
    words = [f"w{n} " for n in range(count)]
    for first in range(0, count, size):
        await hand.emit(*(("message.delta", {"message_id": "m", "text": word}) for word in words[first : first + size]))
    return "".join(words)


async def long_message(hand: Hand) -> str:
    """Events up to `LAST`, with a checkpoint of the text so far at `CHECKPOINT`; the text of the whole message."""
    await hand.emit(("message.started", {"message_id": "m", "role": "assistant"}))
    text = await say(hand, CHECKPOINT - 4)
    await hand.emit(("message.checkpoint", {"message_id": "m", "text": text}))
    return text + await say(hand, LAST - CHECKPOINT)


async def trimmed(store: Store, run_id: str) -> int:
    """Let go of all that may go; the first sequence that is left."""
    folded = await store.checkpoints.fold(run_id)
    await store.checkpoints.store(run_id, folded.fold)
    return await store.checkpoints.trim(run_id, folded.fold.covered)


async def shown(store: Store, run_id: str, events: list[Event]) -> Any:
    """The snapshot that follows from some events."""
    fold = Fold()
    for event in events:
        fold.apply(event)
    return fold.view(await store.runs.load(run_id), earliest_sequence=1)


@pytest.mark.parametrize("cursor", CURSORS)
async def test_a_live_log_that_was_trimmed(service: Service, cursor: int) -> None:
    """From every cursor the rest folds to the snapshot; all that is missing are deltas before the checkpoint; then it is live."""
    hand = await start(service.store, "long")
    await long_message(hand)
    whole = await service.store.events.after(hand.run_id, 0, 1000)
    assert await trimmed(service.store, hand.run_id) == CHECKPOINT + 1, "exactly up to what the checkpoint covers"
    follower = await service.follow(hand.run_id).open(cursor)
    if cursor < LAST:
        await follower.until(LAST)
    first = max(cursor + 1, CHECKPOINT)
    assert [n for n in follower.sequences if n >= CHECKPOINT] == list(range(first, LAST + 1))
    assert [n for n in follower.sequences if n < CHECKPOINT] == [n for n in (1, 2, 3) if n > cursor]
    known = [e for e in whole if e.sequence <= cursor or e.sequence in follower.sequences]
    assert await shown(service.store, hand.run_id, known) == await shown(service.store, hand.run_id, whole)
    page = (await service.client.get(f"/agent-runs/{hand.run_id}/events", params={"after": cursor, "limit": 1000})).json()
    assert [e["sequence"] for e in page["events"]] == follower.sequences
    await hand.emit_many(3)
    await follower.until(LAST + 3)
    assert follower.sequences[-3:] == [LAST + 1, LAST + 2, LAST + 3] and not follower.control
    await hand.finish()
    assert await follower.until_end() == "clean"


async def test_a_slow_viewer_is_overtaken(service: Service) -> None:
    """A viewer that stands still while the log grows and is trimmed under it misses covered deltas, and not one other event."""
    hand = await start(service.store, "long")
    await hand.emit(("message.started", {"message_id": "m", "role": "assistant"}))
    slow = await Stalled(service.base_url, f"/agent-runs/{hand.run_id}/events").open()
    text = ""
    for number in range(6):
        # Large, so that they do not fit into all the buffers between here and the viewer.
        await hand.emit(*(("step.done", {"n": number, "text": "x" * 200_000}) for _ in range(8)))
        text += await say(hand, 300)
        await hand.emit(("message.checkpoint", {"message_id": "m", "text": text}))
        await trimmed(service.store, hand.run_id)
    last = (await hand.finish()).sequence
    await slow.read()
    assert slow.ended == "clean"
    assert slow.sequences == sorted(set(slow.sequences)) and slow.sequences[-1] == last
    lost = set(range(1, last + 1)) - set(slow.sequences)
    kept = {e.sequence for e in await service.store.events.after(hand.run_id, 0, 5000)}
    assert len(lost) > 300, "it was meant to be overtaken"
    assert not lost & kept, "an event that is still there was jumped over"
    slow.close()


async def half_said(service: Service) -> str:
    """A run that failed in the middle of its message, whose deltas' time has passed; its id."""
    run_id = await new_run_id(service.client, "long", retention={"deltas_ms": 100})
    hand = await claim(service.store, "long")
    await long_message(hand)
    await hand.emit_many(5)
    await hand.finish("failed")
    await snapshot(service.client, run_id)

    async def shorter() -> bool:
        await service.store.sweep.once()
        return (await snapshot(service.client, run_id))["earliest_sequence"] > 1

    await wait_until(shorter, "the deltas to go")
    return run_id


async def test_after_the_end(service: Service, admin: Admin) -> None:
    """Where the deltas are gone and nothing carries them, every cursor before them expired, in one way; every later one is exact."""
    run_id = await half_said(service)
    url, stream = f"/agent-runs/{run_id}/events", {"accept": "text/event-stream"}
    final = await snapshot(service.client, run_id)
    earliest, latest = final["earliest_sequence"], final["sequence"]
    assert (earliest, latest, final["state"]) == (LAST + 1, LAST + 6, "failed")
    [message] = final["messages"]
    assert message["status"] == "interrupted" and message["content"][0]["text"].startswith("w0 w1 w2 ")
    for cursor in (0, 1, 10, CHECKPOINT - 1, CHECKPOINT, CHECKPOINT + 1, earliest - 2):
        for headers in (stream, {"accept": "application/json"}):
            problem = check_problem(await service.client.get(url, headers={**headers, "last-event-id": str(cursor)}), 410, "cursor_expired")
            assert (problem["earliest_sequence"], problem["latest_sequence"], problem["state"]) == (earliest, latest, "failed")
            assert (problem["snapshot"], problem["resume_after"]) == (f"/agent-runs/{run_id}", f"{run_id}:{latest}")
            assert problem["render"] in ("partial_message", "unknown_outcome")
    for cursor in (earliest - 1, earliest, latest - 1):
        follower = await service.follow(run_id).open(cursor)
        assert await follower.until_end() == "clean"
        follower.check(cursor + 1, latest)
    assert (await service.client.get(url, headers={**stream, "last-event-id": f"{run_id}:{latest}"})).status_code == 204
    answer = await service.client.get(url, headers={**stream, "last-event-id": "3"}, params={"expired": "snapshot"})
    assert answer.status_code == 200 and f"id: {run_id}:{latest}\nevent: run.snapshot\n" in answer.text
    left: list[Any] = admin.xrange(service.store.keys.audit(run_id), "-", "+", count=1)
    assert left[0][0] == b"1-0" and not admin.exists(service.store.keys.log(run_id))


async def test_pages_agree_with_streams_at_every_bound(service: Service) -> None:
    """On either side of every bound, live and ended, a page and a stream say the same."""
    run_id = await half_said(service)
    earliest = (await snapshot(service.client, run_id))["earliest_sequence"]

    async def both(cursor: int) -> tuple[Any, Any]:
        follower = await Follower(service.client, run_id).open(cursor)
        if follower.stream.status != 200:
            return follower.stream.problem()["code"], None
        await follower.until_end()
        page = await service.client.get(f"/agent-runs/{run_id}/events", params={"after": cursor, "limit": 1000})
        return follower.sequences, [e["sequence"] for e in page.json()["events"]]

    answers = await asyncio.gather(*(both(cursor) for cursor in range(earliest - 3, earliest + 3)))
    assert [a for a, _ in answers[:2]] == ["cursor_expired"] * 2
    assert all(a == b and a for a, b in answers[2:])

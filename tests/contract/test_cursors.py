"""What a cursor is worth: each kind has one answer, and an expired window still leads to the result."""

import json

import httpx

from reattach.core.run import Retention

from ..support.calls import check_problem, ended, snapshot
from ..support.drive import Hand, start
from ..support.factories import Replicas
from ..support.service import Service
from ..support.sse import SSEParser
from ..support.waiting import wait_until


async def ask(service: Service, hand: Hand, cursor: str) -> httpx.Response:
    """The answer to a stream request with a cursor that is refused."""
    headers = {"accept": "text/event-stream", "last-event-id": cursor}
    return await service.client.get(f"/agent-runs/{hand.run_id}/events", headers=headers)


async def expired_run(replicas: Replicas) -> tuple[Service, Hand]:
    """A run that ended, whose events are gone and whose record is not."""
    service = await replicas()
    hand = await start(service.store, retention=Retention(deltas_ms=200, events_ms=300, run_ms=60_000))
    await hand.emit(("message.delta", {"message_id": "m", "text": "Hel"}), ("message.delta", {"message_id": "m", "text": "lo"}))
    await hand.emit(("message.completed", {"message_id": "m", "role": "assistant", "content": [{"type": "text", "text": "Hello"}]}))
    await hand.finish(outcome={"answer": 42})
    await ended(service.client, hand.run_id)

    async def gone() -> bool:
        return (await service.store.runs.read(hand.run_id)).bounds.earliest_sequence == 7

    await wait_until(gone, "the events to expire")
    return service, hand


async def test_05_every_bad_cursor_has_its_own_type(replicas: Replicas) -> None:
    """Future, malformed, expired and foreign cursors are told apart by status and code, and none of them gets a frame."""
    service, hand = await expired_run(replicas)
    live = await start(service.store, "live")
    for given, cursor, status, code in (
        (live, "3", 416, "future_cursor"),
        (live, f"{live.run_id}:3", 416, "future_cursor"),
        (live, "x", 400, "malformed_cursor"),
        (live, "-1", 400, "malformed_cursor"),
        (live, f"{hand.run_id}:1", 400, "cursor_run_mismatch"),
        (hand, "1", 410, "cursor_expired"),
        (hand, f"{hand.run_id}:4", 410, "cursor_expired"),
    ):
        problem = check_problem(await ask(service, given, cursor), status, code)
        if status in (410, 416):
            assert problem["snapshot"] == f"/agent-runs/{given.run_id}"
            assert (problem["latest_sequence"], problem["state"]) == ((2, "running") if given is live else (6, "succeeded"))
    await live.finish()


async def test_11_an_expired_window_still_gives_the_final_snapshot(replicas: Replicas) -> None:
    """The refusal says where to go on; the snapshot has the whole result; `expired=snapshot` brings it as the first frame."""
    service, hand = await expired_run(replicas)
    problem = check_problem(await ask(service, hand, "2"), 410, "cursor_expired")
    assert (problem["earliest_sequence"], problem["latest_sequence"], problem["render"]) == (7, 6, "completed_message")
    shown = await snapshot(service.client, hand.run_id)
    assert (shown["state"], shown["outcome"], shown["sequence"]) == ("succeeded", {"answer": 42}, 6)
    assert shown["messages"][0]["content"] == [{"type": "text", "text": "Hello"}]
    assert (await ask(service, hand, problem["resume_after"])).status_code == 204
    stream = await service.client.get(
        f"/agent-runs/{hand.run_id}/events",
        params={"expired": "snapshot"},
        headers={"accept": "text/event-stream", "last-event-id": "2"},
    )
    [frame] = SSEParser().feed(stream.content)
    assert (frame.event, frame.id) == ("run.snapshot", f"{hand.run_id}:6")
    assert json.loads(frame.data) == shown

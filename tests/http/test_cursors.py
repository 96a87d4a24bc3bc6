"""Every row of the cursor table, for streams and for pages."""

import json
from typing import Any

import httpx
import pytest

from reattach.core.ids import new_run_id
from reattach.store import Store

from ..support import drive
from ..support.service import Service

STREAM = {"accept": "text/event-stream"}
PAGE = {"accept": "application/json"}
BOTH = pytest.mark.parametrize("accept", [STREAM, PAGE], ids=["stream", "page"])


async def finished_run(store: Store, events: int = 6) -> str:
    """A run with this many events, the last of them its end."""
    hand = await drive.start(store)
    await hand.emit_many(events - 3)
    assert (await hand.finish()).sequence == events
    return hand.run_id


async def ask(service: Service, run_id: str, accept: dict[str, str], *cursors: str, **params: str) -> httpx.Response:
    """Ask for events with these Last-Event-ID headers."""
    headers = [*accept.items(), *(("last-event-id", c) for c in cursors)]
    return await service.client.get(f"/agent-runs/{run_id}/events", headers=headers, params=params)


def ids(answer: httpx.Response) -> list[int]:
    """The sequences an answer carries."""
    if answer.headers["content-type"] == "application/json":
        return [event["sequence"] for event in answer.json()["events"]]
    return [int(line.rpartition(":")[2]) for line in answer.text.splitlines() if line.startswith("id: ")]


@BOTH
@pytest.mark.parametrize("form", ["{n}", "{run}:{n}"])
async def test_both_forms_resume_right_behind(service: Service, store: Store, accept: dict[str, str], form: str) -> None:
    """From every cursor the first event is the next one, and none is missing."""
    run_id = await finished_run(store)
    for n in range(6):
        cursor = form.format(n=n, run=run_id)
        assert ids(await ask(service, run_id, accept, cursor)) == list(range(n + 1, 7))
        assert ids(await ask(service, run_id, accept, after=cursor)) == list(range(n + 1, 7))


@BOTH
async def test_no_cursor_and_an_empty_one_mean_the_beginning(service: Service, store: Store, accept: dict[str, str]) -> None:
    """A browser that has seen no event sends an empty header or none."""
    run_id = await finished_run(store)
    assert ids(await ask(service, run_id, accept)) == ids(await ask(service, run_id, accept, "")) == [1, 2, 3, 4, 5, 6]


@BOTH
async def test_the_header_wins_over_the_address(service: Service, store: Store, accept: dict[str, str]) -> None:
    """A browser keeps the old URL when it reconnects."""
    run_id = await finished_run(store)
    assert ids(await ask(service, run_id, accept, "4", after="1")) == [5, 6]


ODD = [
    "-1", "abc", "$", "+", "-", "0-0", "5-0", "1e3", "00012", "1_0", "0x5", "null", "undefined", "NaN", "1.0", "9" * 8192,
    "99999999999999999999", "run_x:3", ":3", "3:", "run_0000000000000000000000000:3",
]  # fmt: skip


@BOTH
@pytest.mark.parametrize("cursor", ODD)
async def test_odd_cursors_are_malformed(service: Service, store: Store, accept: dict[str, str], cursor: str) -> None:
    """None is trimmed, clamped or passed on; header and parameter alike (case O10)."""
    run_id = await finished_run(store)
    for answer in (await ask(service, run_id, accept, cursor), await ask(service, run_id, accept, after=cursor)):
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed_cursor")
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("cursor", [" 12 ", "\uff11\uff12", "1\n", "1\r\nid: 9"])
async def test_odd_cursors_that_only_an_address_can_carry(service: Service, store: Store, cursor: str) -> None:
    """White space, foreign digits and line breaks."""
    answer = await ask(service, await finished_run(store), STREAM, after=cursor)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_cursor")


@BOTH
async def test_two_headers_that_differ_are_malformed(service: Service, store: Store, accept: dict[str, str]) -> None:
    """Two that agree are one."""
    run_id = await finished_run(store)
    answer = await ask(service, run_id, accept, "1", "2")
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_cursor")
    assert ids(await ask(service, run_id, accept, "4", "4")) == [5, 6]


@BOTH
async def test_another_runs_cursor_is_a_mismatch_whoever_owns_it(service: Service, store: Store, accept: dict[str, str]) -> None:
    """The same answer for one's own run, another tenant's and none at all (case O08)."""
    mine, other = await finished_run(store), await finished_run(store)
    foreign = await drive.create(store, tenant="somebody")
    answers = [await ask(service, mine, accept, f"{run}:3") for run in (other, foreign, new_run_id(1))]
    assert {(a.status_code, a.json()["code"]) for a in answers} == {(400, "cursor_run_mismatch")}
    assert len({a.content for a in answers}) == 1
    assert ids(await ask(service, mine, accept, f"{mine}:4")) == [5, 6]


@BOTH
async def test_a_cursor_ahead_of_the_run_is_told_so(service: Service, store: Store, accept: dict[str, str]) -> None:
    """416 with what a client needs to go on."""
    run_id = await finished_run(store)
    for cursor in ("7", f"{run_id}:7", "9007199254740991"):
        answer = await ask(service, run_id, accept, cursor)
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (416, "future_cursor")
        assert (problem["latest_sequence"], problem["state"], problem["snapshot"]) == (6, "succeeded", f"/agent-runs/{run_id}")


async def expired_run(store: Store, admin: Any, *, terminal: bool) -> str:
    """A run whose first events, among them some that a fold needs, are gone."""
    hand = await drive.start(store)
    await hand.emit_many(3)
    if terminal:
        await hand.finish(outcome={"ok": True})
    admin.xtrim(store.keys.log(hand.run_id), minid="4-0", approximate=False)
    admin.delete(store.keys.audit(hand.run_id))
    return hand.run_id


@pytest.mark.leaves_wreckage("history is removed by force")
@BOTH
@pytest.mark.parametrize("terminal", [False, True], ids=["live", "ended"])
async def test_an_expired_cursor_says_how_to_go_on(
    service: Service, store: Store, admin: Any, accept: dict[str, str], terminal: bool
) -> None:
    """410 with the bounds, a cursor that works, and what can be shown."""
    run_id = await expired_run(store, admin, terminal=terminal)
    latest = 6 if terminal else 5
    for cursor in ((), ("0",), ("2",), (f"{run_id}:1",)):
        answer = await ask(service, run_id, accept, *cursor)
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (410, "cursor_expired"), cursor
        assert (problem["earliest_sequence"], problem["latest_sequence"]) == (4, latest)
        assert problem["snapshot"] == f"/agent-runs/{run_id}"
        assert problem["render"] == ("completed_message" if terminal else "partial_message")
    resumed = await ask(service, run_id, PAGE, problem["resume_after"])
    assert (resumed.status_code, ids(resumed), resumed.json()["latest_sequence"]) == (200, [], latest)
    assert ids(await ask(service, run_id, PAGE, "3")) == list(range(4, latest + 1))


@pytest.mark.leaves_wreckage("history is removed by force")
async def test_an_expired_stream_may_begin_with_the_snapshot(service: Service, store: Store, admin: Any) -> None:
    """?expired=snapshot: the snapshot under its own id, then the events after it."""
    run_id = await expired_run(store, admin, terminal=False)
    follower = service.follow(run_id)
    follower.connect(None, after="0", on="")
    await follower.stream.finished()
    assert follower.stream.status == 410
    async with service.client.stream(
        "GET", f"/agent-runs/{run_id}/events?expired=snapshot", headers={**STREAM, "last-event-id": "1"}
    ) as response:
        assert response.status_code == 200
        text = ""
        async for chunk in response.aiter_text():
            text += chunk
            if "}\n\n" in text:
                break
    frame = next(part for part in text.split("\n\n") if part.startswith("id:"))
    head, kind, data = frame.split("\n")
    assert (head, kind) == (f"id: {run_id}:5", "event: run.snapshot")
    assert json.loads(data.removeprefix("data: ")) == (await service.client.get(f"/agent-runs/{run_id}")).json()


@pytest.mark.leaves_wreckage("history is removed by force")
async def test_an_expired_ended_run_is_its_snapshot_and_a_clean_end(service: Service, store: Store, admin: Any) -> None:
    """Nothing more can come; the page says the same."""
    run_id = await expired_run(store, admin, terminal=True)
    answer = await ask(service, run_id, STREAM, expired="snapshot")
    assert ids(answer) == [6] and "event: run.snapshot" in answer.text
    page = (await ask(service, run_id, PAGE, expired="snapshot")).json()
    assert (page["events"], page["done"], page["snapshot"]["outcome"], page["next_cursor"]) == ([], True, {"ok": True}, f"{run_id}:6")
    fresh = await finished_run(store)
    assert "snapshot" not in (await ask(service, fresh, PAGE, expired="snapshot")).json()


async def test_the_terminal_cursor_stops_an_event_source(service: Service, store: Store) -> None:
    """204 without a body, for both forms; a page says done instead (case O11)."""
    run_id = await finished_run(store)
    for cursor in ("6", f"{run_id}:6"):
        answer = await ask(service, run_id, STREAM, cursor)
        assert (answer.status_code, answer.content) == (204, b"")
        assert "content-type" not in answer.headers
    page = (await ask(service, run_id, PAGE, "6")).json()
    assert (page["events"], page["done"], page["next_cursor"]) == ([], True, f"{run_id}:6")


async def test_no_cursor_error_is_a_conflict(service: Service, store: Store) -> None:
    """Common clients retry 409 by themselves."""
    run_id = await finished_run(store)
    for cursor in ("x", "7", f"{new_run_id(1)}:1"):
        assert (await ask(service, run_id, STREAM, cursor)).status_code != 409

"""O10: odd cursor values: each one is valid as documented or refused with its type, quickly; never a full replay or a silent live tail."""

import time

import pytest

from ..support.calls import check_problem
from ..support.drive import Hand, start
from ..support.service import Service

MALFORMED = [
    "-1", "abc", "$", "+", "-", "0-0", "3-0", "1e3", "00012", "+3", "3.0", "0x3", "１２", "null", "undefined", "*", ">", "^", "3:", ":3",
    "9" * 8192, "99999999999999999999", "run_:3", "3 4", "3,4", "'3'", "\u0663",
]  # fmt: skip


@pytest.fixture
async def hand(service: Service) -> Hand:
    """A live run with six events."""
    hand = await start(service.store, "odd")
    await hand.emit_many(4)
    return hand


async def test_malformed_cursors_are_refused(service: Service, hand: Hand) -> None:
    """Nothing is trimmed, parsed kindly or passed to Redis."""
    url = f"/agent-runs/{hand.run_id}/events"
    for cursor in MALFORMED:
        for headers, params in (({"last-event-id": cursor.encode()}, {}), ({}, {"after": cursor})):
            started = time.monotonic()
            response = await service.client.get(url, headers={b"accept": b"text/event-stream", **headers}, params=params)  # type: ignore[dict-item]
            check_problem(response, 400, "malformed_cursor")
            assert time.monotonic() - started < 1.0, f"{cursor[:20]!r} took too long"
    for cursor in (" 3", "3 ", "\t3", "3\n", "%203"):
        check_problem(await service.client.get(url, params={"after": cursor}), 400, "malformed_cursor")
    await hand.finish()


async def test_two_cursors_that_differ_are_refused(service: Service, hand: Hand) -> None:
    """Two headers with one value are one cursor, with two values none; the header wins over the query."""
    url = f"/agent-runs/{hand.run_id}/events"
    stream = {"accept": "application/json"}
    two = [("last-event-id", "3"), ("last-event-id", "4"), *stream.items()]
    check_problem(await service.client.get(url, headers=two), 400, "malformed_cursor")
    check_problem(await service.client.get(f"{url}?after=3&after=4", headers=stream), 422, "invalid_request")
    same = [("last-event-id", "3"), ("last-event-id", "3"), *stream.items()]
    page = (await service.client.get(url, headers=same)).json()
    assert [e["sequence"] for e in page["events"]] == [4, 5, 6]
    page = (await service.client.get(f"{url}?after=1", headers={"last-event-id": "5", **stream})).json()
    assert [e["sequence"] for e in page["events"]] == [6]
    await hand.finish()


async def test_documented_forms_work(service: Service, hand: Hand) -> None:
    """A bare sequence, an event id, zero, and an empty header, which a browser may send before its first event."""
    await hand.finish()
    for cursor, first in (("3", 4), (f"{hand.run_id}:3", 4), ("0", 1), (f"{hand.run_id}:0", 1), ("", 1)):
        follower = await service.follow(hand.run_id).open(cursor)
        assert await follower.until_end() == "clean"
        follower.check(first, 7)
    for cursor in ("8", f"{hand.run_id}:8"):
        response = await service.client.get(f"/agent-runs/{hand.run_id}/events", headers={"last-event-id": cursor})
        check_problem(response, 416, "future_cursor")


async def test_order_is_by_number_not_by_text(service: Service) -> None:
    """In a run of 1,100 events every resume begins with cursor + 1 and has exactly the rest."""
    hand = await start(service.store, "long")
    await hand.emit_many(1097)
    await hand.finish()
    for cursor in (0, 8, 9, 10, 98, 99, 100, 998, 999, 1000, 1099):
        follower = await service.follow(hand.run_id).open(cursor)
        assert await follower.until_end() == "clean"
        follower.check(cursor + 1, 1100)
        assert len(follower.sequences) == 1100 - cursor

"""One record per connection (contract, section 11), and no secret in any."""

from typing import Any

import pytest
import structlog.testing

from reattach.store import Store

from ..support import drive
from ..support.service import Service
from ..support.waiting import wait_until
from .raw import connection


def connections(logs: list[Any]) -> list[dict[str, Any]]:
    """The records of connections among what was logged."""
    return [dict(entry) for entry in logs if entry["event"] == "connection"]


async def test_a_streams_record_tells_its_story(service: Service, store: Store) -> None:
    """What was replayed, what was live, how it ended."""
    hand = await drive.start(store)
    await hand.emit_many(3)
    with structlog.testing.capture_logs() as logs:
        follower = await service.follow(hand.run_id).open(2)
        await follower.until(5)
        await hand.emit_many(2, start=4)
        await follower.until(7)
        await hand.finish()
        await follower.until_end()
        await wait_until(lambda: connections(logs), "the record")
    [record] = connections(logs)
    assert (record["run_id"], record["principal"], record["transport"]) == (hand.run_id, "dev/developer", "sse")
    assert (record["requested_cursor"], record["accepted_cursor"], record["policy"]) == ("2", 2, "allowed")
    assert (record["replayed"], record["first_live_sequence"], record["delivered"]) == ((3, 5), 6, 6)
    assert (record["state"], record["snapshot_version"], record["close_reason"]) == ("succeeded", 8, "terminal")


async def test_refused_connections_have_records_too(service: Service, store: Store) -> None:
    """With the code as the reason; a cursor that is none is not repeated."""
    mine, foreign = await drive.create(store), await drive.create(store, tenant="somebody")
    with structlog.testing.capture_logs() as logs:
        for run_id, cursor in ((foreign, "0"), (mine, "Bearer eyJhbGciOi"), (mine, "9")):
            await (await service.follow(run_id).open(cursor)).until_end()
    told = [(r["run_id"], r["requested_cursor"], r["policy"], r["close_reason"]) for r in connections(logs)]
    assert told == [
        (None, None, "run_not_found", "run_not_found"),
        (mine, "malformed", "allowed", "malformed_cursor"),
        (mine, "9", "allowed", "future_cursor"),
    ]
    assert "eyJ" not in str(logs)


async def test_a_client_that_leaves_is_recorded(service: Service, store: Store) -> None:
    """Whoever closed it."""
    run_id = await drive.create(store)
    with structlog.testing.capture_logs() as logs:
        follower = await service.follow(run_id).open()
        await follower.until(1)
        await follower.close()
        await wait_until(lambda: connections(logs), "the record")
    [record] = connections(logs)
    assert (record["close_reason"], record["state"], record["delivered"]) == ("client_closed", "queued", 1)


async def test_a_client_that_leaves_a_long_poll_is_recorded(service: Service, store: Store) -> None:
    """It was a connection like any other, though nothing was delivered."""
    run_id = await drive.create(store)
    with structlog.testing.capture_logs() as logs:
        async with connection(service.base_url) as raw:
            raw.ask("GET", f"/agent-runs/{run_id}/events?after=1&wait=30", "accept: application/json")
            await wait_until(lambda: service.hub.stats().followers == 1, "it to wait")
            raw.abort()
            await wait_until(lambda: connections(logs), "the record")
    [record] = connections(logs)
    assert (record["run_id"], record["transport"], record["accepted_cursor"]) == (run_id, "json", 1)
    assert (record["delivered"], record["policy"], record["close_reason"]) == (0, "allowed", "client_closed")


@pytest.mark.parametrize(("cursor", "reason"), [("3", "nothing_left"), ("1", "page")])
async def test_other_ways_to_be_answered(service: Service, store: Store, cursor: str, reason: str) -> None:
    """Pages and empty answers have records as well."""
    hand = await drive.start(store)
    await hand.finish()
    accept = "text/event-stream" if reason == "nothing_left" else "application/json"
    with structlog.testing.capture_logs() as logs:
        await service.client.get(f"/agent-runs/{hand.run_id}/events", headers={"accept": accept, "last-event-id": cursor})
    assert [r["close_reason"] for r in connections(logs)] == [reason]

"""Who may read a session, add to it, and see what of its runs."""

import asyncio
import json
from typing import Any

import pytest

from reattach.core.run import RunRecord
from reattach.http.auth import OwnPolicy, Principal
from reattach.store import Store

from ...support import drive
from ...support.factories import Replicas
from ...support.waiting import wait_until
from ..listeners import Listener
from .people import Believed, Person

ANN, BEN, CHIEF = "acme/ann", "acme/ben", "acme/chief read"
CLERK, EVE = "acme/clerk read:acme/tickets", "evil/eve read"
SECRET = "30 000 EUR a month"


async def serve(replicas: Replicas, **options: Any) -> Any:
    """A replica with the own policy, or another."""
    return await replicas(authenticator=Believed(), **{"authorizer": OwnPolicy(), **options})


async def test_whose_session_it_is(replicas: Replicas) -> None:
    """Its maker reads it, and who may read the whole tenant; to others of the tenant it is forbidden, to other tenants unknown."""
    service = await serve(replicas)
    await Person(service.client, ANN).create(session_id="talk")
    wanted = {ANN: "200", CHIEF: "200", BEN: "forbidden", CLERK: "forbidden", EVE: "session_not_found"}
    for who, code in wanted.items():
        person = Person(service.client, who)
        for path in ("/sessions/talk", "/sessions/talk/events?limit=1"):
            assert await person.code("GET", path) == code, (who, path)
        listed = (await person.ask("GET", "/sessions")).json()["sessions"]
        assert [session["session_id"] for session in listed] == (["talk"] if code == "200" else [])
    assert await Person(service.client, ANN, x_ticket="run_00" + "0" * 24).code("GET", "/sessions/talk") == "forbidden"


async def test_nobody_adds_to_a_session_that_they_may_not_read(replicas: Replicas) -> None:
    """Or its policy would cancel somebody else's run for them; the same name in another tenant is another session."""
    service = await serve(replicas)
    ann = Person(service.client, ANN)
    assert await ann.code("POST", "/sessions", {"session_id": "talk", "policy": "replace"}) == "201"
    run_id = await ann.create(session_id="talk")
    body: dict[str, Any] = {"agent": "support", "input": {}, "session_id": "talk"}
    assert await Person(service.client, BEN).code("POST", "/agent-runs", body) == "forbidden"
    assert await Person(service.client, EVE).code("POST", "/agent-runs", body) == "201"
    assert (await ann.ask("GET", f"/agent-runs/{run_id}")).json()["state"] == "queued"
    taken = {"session_id": "talk", "policy": "replace"}
    assert await Person(service.client, BEN).code("POST", "/sessions", taken) == "session_exists"
    assert await Person(service.client, CHIEF).code("POST", "/agent-runs", body) == "201"
    assert (await ann.ask("GET", f"/agent-runs/{run_id}")).json()["state"] == "cancelled"


async def test_what_a_reader_may_not_see_of_it(replicas: Replicas, store: Store) -> None:
    """A run of somebody else in one's session: its events keep their places and ids and come without payload; it is in no list."""
    service = await serve(replicas)
    own = await drive.start(store, tenant="acme", initiator="ann", session_id="talk")
    other = await drive.start(store, tenant="acme", initiator="boss", session_id="talk", resource_scope="acme/payroll")
    await other.emit(("salary.found", {"text": SECRET}))
    await own.emit(("step.done", {"text": "all is well"}))
    ann, chief = Person(service.client, ANN), Person(service.client, CHIEF)
    listeners = {who: Listener(service.client, "talk", headers=Person(service.client, who).headers) for who in (ANN, CHIEF)}
    for listener in listeners.values():
        await (await listener.open()).until(6)
        listener.check(1, 6)
    pages = {who: (await Person(service.client, who).ask("GET", "/sessions/talk/events?limit=100")).text for who in (ANN, CHIEF)}
    shown = {who: (await person.ask("GET", "/sessions/talk")).text for who, person in ((ANN, ann), (CHIEF, chief))}
    seen = {who: bytes(listener.stream.raw).decode() for who, listener in listeners.items()}
    for texts in (pages, seen):
        assert SECRET in texts[CHIEF] and SECRET not in texts[ANN] and "all is well" in texts[ANN]
    hidden = [event for event in listeners[ANN].events if event["run_id"] == other.run_id]
    assert [event["payload"] for event in hidden] == [{"redacted": True}] * 3
    assert json.loads(pages[ANN])["events"] == [
        event | {"session_sequence": n} for n, event in zip(listeners[ANN].sequences, listeners[ANN].events, strict=True)
    ]
    assert other.run_id not in shown[ANN] and other.run_id in shown[CHIEF]
    await other.emit(("salary.found", {"text": SECRET}))
    await listeners[ANN].until(7)
    assert listeners[ANN].events[-1]["payload"] == {"redacted": True}
    for listener in listeners.values():
        await listener.close()
    for hand in (own, other):
        await hand.finish()


class Switched:
    """A policy that can be turned off."""

    allows = True

    async def may(self, principal: Principal, action: str, record: RunRecord | None) -> bool:
        """As it is switched."""
        return self.allows


async def test_access_that_ends_ends_the_stream(replicas: Replicas, store: Store) -> None:
    """Within a keep-alive interval, with the reason, and cut; so does a session that is gone."""
    policy = Switched()
    service = await serve(replicas, authorizer=policy, keepalive=0.4)
    await drive.create(store, tenant="acme", initiator="ann", session_id="talk")
    listener = Listener(service.client, "talk", headers=Person(service.client, ANN).headers)
    await (await listener.open()).until(1)
    policy.allows = False
    assert await listener.until_end() == "cut"
    assert [json.loads(frame.data) for frame in listener.control] == [{"reason": "unauthorized"}]
    await listener.close()


@pytest.mark.parametrize("who", [ANN, CHIEF])
async def test_many_listeners_share_what_was_made_for_one(replicas: Replicas, store: Store, who: str) -> None:
    """Every one of them gets all of it, in order."""
    service = await serve(replicas)
    hands = [await drive.start(store, tenant="acme", initiator="ann", session_id="talk") for _ in range(3)]
    listeners = [Listener(service.client, "talk", headers=Person(service.client, who).headers) for _ in range(10)]
    for listener in listeners:
        await listener.open()
    await asyncio.gather(*(hand.emit_many(50, size=7) for hand in hands))
    for hand in hands:
        await hand.finish()
    for listener in listeners:
        await listener.until(3 * 53)
        listener.check(1, 3 * 53)
        await listener.close()
    await wait_until(lambda: service.hub.stats().followers == 0, "everybody to be gone")


async def test_sessions_are_counted(replicas: Replicas) -> None:
    """Only so many may be made in a minute; one that is there is found again without being counted."""
    service = await serve(replicas, subject_run_rate=3)
    ann = Person(service.client, ANN)
    for n in (0, 0, 1, 2, 1):
        assert await ann.code("POST", "/sessions", {"session_id": f"talk-{n}"}) in ("200", "201")
    assert await ann.code("POST", "/sessions", {"session_id": "one-more"}) == "too_many_requests"
    assert await ann.code("POST", "/sessions", {"session_id": "talk-2"}) == "200"

"""What was taken away is gone everywhere at once: requests, open streams, tickets, on every replica; and later credentials are good."""

import json
import time
from typing import Any

import pytest

from reattach.http.auth import OwnPolicy, Principal
from reattach.http.auth.revoked import Revoked
from reattach.store import Ring, Store
from reattach.store.revocations import Kind, Target

from ...support import drive
from ...support.factories import OwnRedis, Replicas
from ...support.waiting import wait_until
from .people import Believed, Person

BEFORE = f"{time.time() - 100:.0f}"
LATER = f"{time.time() + 1_000_000:.0f}"


def target(kind: Kind, name: str = "", tenant: str = "acme") -> Target:
    """What to take away."""
    return Target(kind=kind, tenant=tenant, name=name)


async def refused(person: Person, run_id: str) -> str:
    """What somebody is told who asks for a run, once anything is refused."""

    async def code() -> str | None:
        said = await person.code("GET", f"/agent-runs/{run_id}")
        return said if said != "200" else None

    return await wait_until(code, "the refusal", timeout=5)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("subject", "ann", "unauthenticated"), ("tenant", "", "unauthenticated"), ("login", "L1", "unauthenticated"),
        ("session", "s-1", "forbidden"), ("run", "", "forbidden"),
    ],
)  # fmt: skip
async def test_everywhere_and_at_once(replicas: Replicas, store: Store, kind: Kind, name: str, code: str) -> None:
    """On two replicas: open streams end with their reason within a second, and nobody gets back in with what was given before."""
    here, there = [await replicas(authenticator=Believed(), authorizer=OwnPolicy(), keepalive=30.0) for _ in range(2)]
    hand = await drive.start(store, tenant="acme", initiator="ann", session_id="s-1")
    old = {"x-who": "acme/ann", "x-issued": BEFORE, "x-login": "L1"}
    young = {**old, "x-issued": LATER}
    followers = [service.follow(hand.run_id, headers=old) for service in (here, there)]
    fresh = await there.follow(hand.run_id, headers=young).open()
    for follower in followers:
        await (await follower.open()).until(2)
    began = time.monotonic()
    await store.revocations.revoke(target(kind, hand.run_id if kind == "run" else name), seconds=60, by="test")
    for follower in followers:
        assert await follower.until_end(timeout=5) == "cut"
        assert json.loads(follower.control[-1].data) == {"reason": "unauthorized"}
    assert time.monotonic() - began < 3.0  # far less than the interval at which it would be noticed otherwise
    for service in (here, there):
        assert await refused(Person(service.client, **_headers(old)), hand.run_id) == code
    # Who got a new credential since goes on, on the stream that was open too.
    await hand.emit(("step.done", {}))
    await fresh.until(3)
    assert await Person(here.client, **_headers(young)).code("GET", f"/agent-runs/{hand.run_id}") == "200"
    await hand.finish()


def _headers(given: dict[str, str]) -> dict[str, str]:
    return {"who": given["x-who"], **{name.replace("-", "_"): value for name, value in given.items() if name != "x-who"}}


async def test_others_notice_nothing(replicas: Replicas, store: Store) -> None:
    """Another subject, a subject of that name in another tenant, another run."""
    service = await replicas(authenticator=Believed(), authorizer=OwnPolicy(), keepalive=0.5)
    hand = await drive.start(store, tenant="acme", initiator="bob")
    other = await Person(service.client, "globex/ann").create()
    bob = await service.follow(hand.run_id, headers={"x-who": "acme/bob"}).open()
    for gone in (
        target("subject", "ann"),
        target("run", "run_1"),
        target("session", "s-9"),
        target("login", "L1"),
        target("tenant", "", "x"),
    ):
        await store.revocations.revoke(gone, seconds=60, by="test")
    ann = Person(service.client, "acme/ann")
    await wait_until(lambda: ann.code("GET", "/limits"), "an answer")

    async def out() -> bool:
        return await ann.code("GET", "/limits") == "unauthenticated"

    await wait_until(out, "ann to be out", timeout=5)
    assert await Person(service.client, "globex/ann").code("GET", f"/agent-runs/{other}") == "200"
    assert await Person(service.client, "acme/bob").code("GET", f"/agent-runs/{hand.run_id}") == "200"
    await hand.finish()
    assert await bob.until_end() == "clean"


async def test_tickets_die_with_their_maker(replicas: Replicas, store: Store) -> None:
    """The stream that was opened with one ends, and it opens no other."""
    service = await replicas(authenticator=Believed(), authorizer=OwnPolicy())
    hand = await drive.start(store, tenant="acme", initiator="ann")
    made = await Person(service.client, "acme/ann", x_issued=BEFORE).ask("POST", f"/agent-runs/{hand.run_id}/tickets", {})
    assert made.status_code == 201
    url = made.json()["url"]
    async with service.client.stream("GET", url, headers={"accept": "text/event-stream"}) as response:
        assert response.status_code == 200
        await store.revocations.revoke(target("subject", "ann"), seconds=60, by="test")
        text = ""
        with pytest.raises(Exception, match="incomplete"):
            async for part in response.aiter_text():
                text += part
    assert '"reason":"unauthorized"' in text
    answer = await service.client.get(url)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
    await hand.finish()


async def test_what_was_given_back_counts_again(replicas: Replicas, store: Store) -> None:
    """Also a credential that does not say when it was made."""
    service = await replicas(authenticator=Believed(), authorizer=OwnPolicy())
    ann = Person(service.client, "acme/ann")
    run_id = await ann.create()
    await store.revocations.revoke(target("subject", "ann"), seconds=60, by="test")
    assert await refused(ann, run_id) == "unauthenticated"
    await store.revocations.restore(target("subject", "ann"))

    async def back() -> bool:
        return await ann.code("GET", f"/agent-runs/{run_id}") == "200"

    await wait_until(back, "ann to be back", timeout=5)


async def test_a_lost_bell_costs_a_moment(store: Store) -> None:
    """Where nothing tells of it, it is seen by looking; a process that has just started knows it before it lets anybody in."""
    gone = Principal(tenant="acme", subject="ann")
    deaf = Revoked(store.revocations, interval=0.2)
    await deaf.check(gone)
    await store.revocations.revoke(target("subject", "ann"), seconds=60, by="test")
    await wait_until(lambda: deaf.refuses(gone), "it to be seen", timeout=5)
    late = Revoked(store.revocations, interval=60.0)
    with pytest.raises(Exception, match="revoked"):
        await late.check(gone)
    # Told that hints may have been missed, it looks at once.
    await store.revocations.restore(target("subject", "ann"))
    late.heard(Ring(frozenset(), everything=True))
    await wait_until(lambda: not late.refuses(gone), "it to be seen", timeout=5)
    for copy in (deaf, late):
        await copy.close()


async def test_nobody_is_let_in_before_it_is_known_who_is_out(own_redis: OwnRedis, replicas: Replicas, settings: Any) -> None:
    """A store that is away when the first one comes: a typed 503."""
    server = own_redis()
    service = await replicas(redis=server.url, authenticator=Believed(), authorizer=OwnPolicy(), redis_timeout=0.3)
    server.kill9()
    answer = await Person(service.client, "acme/ann").ask("GET", "/limits")
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")


async def test_seconds_and_milliseconds(store: Store) -> None:
    """A credential made in the second of the revocation is old, one of the next second is new; one without a time is old."""
    copy = Revoked(store.revocations, interval=60.0)
    at = await store.revocations.revoke(target("subject", "ann"), seconds=60, by="test") / 1000
    for issued, out in ((int(at), True), (at, True), (int(at) + 1, False), (None, True), (0.0, True)):
        person = Principal(tenant="acme", subject="ann", issued_at=issued)
        if out:
            with pytest.raises(Exception, match="revoked"):
                await copy.check(person)
        else:
            await copy.check(person)
    await copy.close()

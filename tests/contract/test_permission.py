"""A cursor is never a permission."""

from typing import Any

from reattach.core.run import RunRecord
from reattach.http.auth import Action, Principal

from ..support.calls import cancel, check_problem, post_run
from ..support.drive import start
from ..support.factories import Replicas
from ..support.service import Service


class ByHeader:
    """Believes whoever names a tenant; nobody is refused."""

    async def authenticate(self, request: Any) -> Principal:
        """The caller is who it says."""
        return Principal(tenant=request.headers.get("x-tenant", "dev"), subject="tester", scopes=frozenset())


class Revocable:
    """Says yes until told otherwise."""

    def __init__(self) -> None:
        self.allowed = True

    async def may(self, principal: Principal, action: Action, record: RunRecord | None) -> bool:
        """As it stands now."""
        return self.allowed


async def test_06_lost_access_cannot_reconnect(replicas: Replicas) -> None:
    """When access is gone the open stream ends with its reason, and neither its cursor nor any other request gets in again."""
    authorizer = Revocable()
    service = await replicas(authenticator=ByHeader(), authorizer=authorizer, keepalive=0.3)
    hand = await start(service.store)
    follower = await service.follow(hand.run_id).open()
    await follower.until(2)
    authorizer.allowed = False
    await hand.emit(("secret.made", {"n": 1}))
    assert await follower.until_end(timeout=5) == "cut"
    assert follower.control[-1].event == "stream.closing" and follower.control[-1].data == '{"reason":"unauthorized"}'
    for cursor in (follower.last_event_id, None):
        await follower.open(cursor)
        assert follower.stream.status in (403, 404)
        assert follower.stream.problem()["code"] in ("forbidden", "run_not_found")
    assert (await service.client.get(f"/agent-runs/{hand.run_id}")).status_code in (403, 404)
    assert (await cancel(service.client, hand.run_id)).status_code in (403, 404)
    assert (await hand.renew()).cancel_version == 0
    authorizer.allowed = True
    await follower.open()
    await hand.finish()
    assert await follower.until_end() == "clean"
    follower.check(1, 4)


async def test_06_another_tenants_run_does_not_exist(replicas: Replicas) -> None:
    """On every endpoint, with and without a genuine cursor: the very answer of a run that does not exist."""
    service = await replicas(authenticator=ByHeader())
    hand = await start(service.store, tenant="red")
    unknown = f"{hand.run_id[:-6]}zzzzzz"
    blue = {"x-tenant": "blue"}
    for run_id in (hand.run_id, unknown):
        for headers in (blue, {**blue, "last-event-id": f"{run_id}:1"}):
            await check_absent(service, run_id, headers)
    stolen = await service.client.get(f"/agent-runs/{hand.run_id}", headers=blue)
    nothing = await service.client.get(f"/agent-runs/{unknown}", headers=blue)
    assert stolen.text.replace(hand.run_id, "…") == nothing.text.replace(unknown, "…")
    mine = await post_run(service.client, "support", key="k")
    assert mine.status_code == 201
    listed = await service.client.get("/agent-runs", headers=blue)
    assert listed.json()["runs"] == []
    await hand.finish()


async def check_absent(service: Service, run_id: str, headers: dict[str, str]) -> None:
    """Every endpoint of this run says 404."""
    base = f"/agent-runs/{run_id}"
    for response in (
        await service.client.get(base, headers=headers),
        await service.client.get(f"{base}/events", headers={**headers, "accept": "text/event-stream"}),
        await service.client.get(f"{base}/events", headers={**headers, "accept": "application/json"}),
        await service.client.post(f"{base}/cancel", headers=headers, json={}),
        await service.client.post(f"{base}/inputs", headers=headers, json={"wait_id": "w", "value": 1}),
    ):
        check_problem(response, 404, "run_not_found")

"""O21: a dropped client must not leave a dirty connection: nobody ever gets somebody else's answer."""

import asyncio
import random
import time
from typing import Any

from reattach.http.auth import Principal

from ..support.admin import Admin
from ..support.calls import new_run_id
from ..support.client import make_client
from ..support.drive import start
from ..support.factories import Proxies, Replicas
from ..support.leaks import OWN_CONNECTIONS, client_count
from ..support.scale import seconds
from ..support.service import Service
from ..support.waiting import wait_until

DURATION, RUNS = 4.0, 40
TENANTS = ("red", "blue")


class ByHeader:
    """Believes whoever names a tenant."""

    async def authenticate(self, request: Any) -> Principal:
        """The caller is who it says."""
        return Principal(tenant=request.headers["x-tenant"], subject="tester", scopes=frozenset())


class Abuser:
    """Opens, aborts and reads, and checks every byte it gets for a stamp that is not its own."""

    def __init__(self, service: Service, tenant: str, runs: list[str]) -> None:
        self.client = make_client(service.base_url, headers={"x-tenant": tenant})
        self.tenant, self.runs, self.answers = tenant, runs, 0

    def check(self, text: str, run_id: str) -> None:
        """Only this run's and this tenant's stamps."""
        self.answers += 1
        for other in TENANTS:
            assert other == self.tenant or f"stamp-{other}" not in text, text
        assert not [r for r in self.runs if r != run_id and r in text], text

    async def abort_stream(self) -> None:
        """Open a stream, break it at any moment."""
        from ..support.client import Follower

        run_id = random.choice(self.runs)
        follower = Follower(self.client, run_id)
        follower.connect(None)
        await asyncio.sleep(random.uniform(0, 0.1))
        await follower.cut()
        self.check(follower.stream.raw.decode(), run_id)
        assert follower.stream.status in (0, 200)

    async def read(self) -> None:
        """Read a snapshot or a page; sometimes walk away before the answer."""
        run_id = random.choice(self.runs)
        path = random.choice((f"/agent-runs/{run_id}", f"/agent-runs/{run_id}/events"))
        request = asyncio.create_task(self.client.get(path, headers={"accept": "application/json"}))
        if random.random() < 0.4:
            await asyncio.sleep(random.uniform(0, 0.1))
            request.cancel()
        answered = await asyncio.gather(request, return_exceptions=True)
        if not isinstance(answered[0], BaseException):
            assert answered[0].status_code == 200, answered[0].text
            self.check(answered[0].text, run_id)

    async def write(self) -> None:
        """Create one more run."""
        run_id = await new_run_id(self.client, "other", {"stamp": f"stamp-{self.tenant}"})
        answer = await self.client.get(f"/agent-runs/{run_id}")
        assert answer.json()["input"] == {"stamp": f"stamp-{self.tenant}"}

    async def go_on(self, until: float) -> None:
        """Do any of it for a while."""
        while time.monotonic() < until:
            await random.choice((self.abort_stream, self.abort_stream, self.read, self.read, self.write))()


async def test_no_answer_reaches_a_stranger(replicas: Replicas, proxies: Proxies, admin: Admin, redis_url: str) -> None:
    """Slow replies and clients that go away at every moment: no foreign stamp, no 500, and connections go back to where they were."""
    before = client_count(admin)
    proxy = await proxies(redis_url)
    service = await replicas(redis=proxy.redis, authenticator=ByHeader())
    quiet = await replicas()
    runs: dict[str, list[str]] = {tenant: [] for tenant in TENANTS}
    for n in range(RUNS):
        tenant = TENANTS[n % 2]
        hand = await start(quiet.store, "stamped", tenant=tenant, initiator="tester", input=b'{"stamp":"stamp-%b"}' % tenant.encode())
        await hand.emit(("step.done", {"stamp": f"stamp-{tenant}", "run": hand.run_id}))
        await hand.finish(outcome={"stamp": f"stamp-{tenant}"})
        runs[tenant].append(hand.run_id)
    proxy.latency = 0.02
    abusers = [Abuser(service, tenant, runs[tenant]) for tenant in TENANTS for _ in range(6)]
    until = time.monotonic() + seconds(DURATION)
    await asyncio.gather(*(abuser.go_on(until) for abuser in abusers))
    assert sum(abuser.answers for abuser in abusers) > 50
    for abuser in abusers:
        await abuser.client.aclose()
    proxy.latency = 0.0
    await wait_until(lambda: client_count(admin) <= before + 2 * OWN_CONNECTIONS, "the pools to be as large as ever", timeout=10)

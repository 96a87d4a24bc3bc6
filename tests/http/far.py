"""A worker far away, that a test drives step by step over HTTP."""

from typing import Any

import httpx

from ..support.service import Service


async def ask(service: Service, *agents: str, wait: float = 10, **more: Any) -> httpx.Response:
    """Ask for a run of these agents."""
    body = {"agents": agents or ("support",), "worker": "far", "wait": wait, **more}
    return await service.client.post("/worker/claims", json=body)


async def claim(service: Service, *agents: str, **more: Any) -> "Far":
    """Get a run of these agents."""
    answer = await ask(service, *agents, **more)
    assert answer.status_code == 200, answer.text
    return Far(service, answer.json())


class Far:
    """The owner of a run.

    Attributes:
        claim: The answer to the claim.
        fence: What it owns the run by.
    """

    def __init__(self, service: Service, claim: dict[str, Any]) -> None:
        self._service, self.claim = service, claim
        self.run_id: str = claim["run"]["run_id"]
        self.fence: str = claim["lease"]["fence"]

    async def try_to(self, verb: str, *, on: Service | None = None, **body: Any) -> httpx.Response:
        """Send an operation; the answer, whatever it is."""
        client = (on or self._service).client
        return await client.post(f"/worker/runs/{self.run_id}/{verb}", json={"fence": self.fence, **body})

    async def do(self, verb: str, **body: Any) -> dict[str, Any]:
        """An operation that works; its answer."""
        answer = await self.try_to(verb, **body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def refused(self, verb: str, **body: Any) -> tuple[int, str]:
        """An operation that does not work; status and code."""
        answer = await self.try_to(verb, **body)
        return answer.status_code, answer.json()["code"]

    async def append(self, batch: int, *events: tuple[str, Any]) -> dict[str, Any]:
        """Append a batch."""
        return await self.do("append", batch=batch, events=[{"type": kind, "payload": payload} for kind, payload in events])


async def events(service: Service, run_id: str) -> list[dict[str, Any]]:
    """The run's log."""
    return (await service.client.get(f"/agent-runs/{run_id}/events", params={"limit": 1000})).json()["events"]


async def types(service: Service, run_id: str) -> list[str]:
    """The log's event types."""
    return [event["type"] for event in await events(service, run_id)]

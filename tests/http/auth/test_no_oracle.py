"""Another tenant's run answers as one that does not exist: body, headers, log lines, and as many commands to Redis, on every endpoint."""

import re
from typing import Any

import pytest
import structlog

from reattach.http.auth import OwnPolicy
from reattach.http.routes import TABLE
from reattach.http.service import Endpoint
from reattach.store import Store

from ...support import drive
from ...support.factories import Replicas
from ...support.service import Service
from .people import Believed, Person

FENCE = "f" * 32
BODIES: dict[str, Any] = {
    "cancelRun": {"reason": "x"},
    "giveInput": {"wait_id": "w", "value": 1},
    "makeTicket": {},
    "appendEvents": {"fence": FENCE, "batch": 1, "events": [{"type": "step.done", "payload": {}}]},
    "intendCall": {"fence": FENCE, "tool_call_id": "c", "tool": "t"},
    "commitCall": {"fence": FENCE, "tool_call_id": "c", "status": "receipt"},
    "parkRun": {"fence": FENCE, "wait_id": "w", "reason": "approval"},
    "finishRun": {"fence": FENCE, "state": "succeeded"},
    "renewLease": {"fence": FENCE},
    "releaseRun": {"fence": FENCE},
}
OF_A_RUN = [endpoint for endpoint in TABLE if "{run_id}" in endpoint.path]
EVE = "evil/eve * read work"


def shown(text: str, run_id: str) -> str:
    """Without what differs between any two requests."""
    text = text.replace(run_id, "RUN")
    return re.sub(r"'(connection_id|duration_ms|ms|timestamp|date)': '?[^,}]*|\d+\.\d+", r"\1", text)


async def everything_told(service: Service, endpoint: Endpoint, run_id: str, query: str, **headers: str) -> tuple[Any, ...]:
    """All that a request leaves behind: the answer, the log, and how many commands it cost."""
    eve = Person(service.client, EVE)
    commands: list[int] = []
    told: set[tuple[Any, ...]] = set()
    # The process does other things of its own now and then: what one of some equal requests cost least is what it costs.
    for _ in range(2):
        now: list[int] = []
        service.store.door.observe = now.append
        with structlog.testing.capture_logs() as logs:
            answer = await eve.ask(endpoint.method, endpoint.path.format(run_id=run_id) + query, BODIES.get(endpoint.name), **headers)
        service.store.door.observe = None
        commands.append(sum(now))
        head = tuple(sorted((name, value) for name, value in answer.headers.items() if name != "date"))
        told.add((answer.status_code, head, shown(answer.text, run_id), shown(str(logs), run_id)))
    assert len(told) == 1
    return *told.pop(), min(commands)


@pytest.mark.parametrize("endpoint", OF_A_RUN, ids=lambda endpoint: endpoint.name)
async def test_a_foreign_run_is_a_missing_run(replicas: Replicas, store: Store, endpoint: Endpoint) -> None:
    """Queued, running or ended; with or without a cursor that is genuine; asked for with the tenant's name in a scope."""
    assert (endpoint.body is None) == (endpoint.name not in BODIES), "a new endpoint needs its body here"
    service = await replicas(authenticator=Believed(), authorizer=OwnPolicy())
    ended = await drive.start(store, tenant="acme", initiator="eve", resource_scope="acme/x")
    await ended.finish()
    running = await drive.start(store, tenant="acme", initiator="eve", session_id="s")
    queued = await drive.create(store, tenant="acme", initiator="eve")
    for run_id in (ended.run_id, running.run_id):
        missing = run_id[:-4] + ("0000" if run_id[-4:] != "0000" else "1111")
        for query, headers in (("", {}), ("?wait=1", {}), ("", {"last_event_id": "{}:1", "accept": "text/event-stream"})):
            if query and endpoint.name not in ("showRun", "readEvents", "cancelRun"):
                continue
            told = [
                await everything_told(service, endpoint, each, query, **{k: v.format(each) for k, v in headers.items()})
                for each in (run_id, missing)
            ]
            assert told[0] == told[1]
            assert told[0][0] == 404 and '"run_not_found"' in told[0][2]
    assert [(await store.runs.load(run_id)).cancel_version for run_id in (running.run_id, queued)] == [0, 0]
    await running.finish()


async def test_nothing_else_names_a_foreign_run(replicas: Replicas, store: Store) -> None:
    """As a parent, as a place in a listing, in a session of the same name, by the same idempotency key, or as work."""
    service = await replicas(authenticator=Believed(), authorizer=OwnPolicy())
    ann, eve = Person(service.client, "acme/ann"), Person(service.client, EVE)
    made = await ann.ask("POST", "/agent-runs", {"agent": "support", "input": {}, "session_id": "s"}, idempotency_key="k")
    run_id = made.json()["run_id"]
    missing = run_id[:-4] + ("0000" if run_id[-4:] != "0000" else "1111")
    for each in (run_id, missing):
        new: dict[str, Any] = {"agent": "support", "input": {}, "parent_run_id": each}
        assert await eve.code("POST", "/agent-runs", new) == "invalid_request"
        page = (await eve.ask("GET", f"/agent-runs?before={each}")).json()
        assert page == {"runs": [], "next_before": None}
    assert (await eve.ask("GET", "/agent-runs?session_id=s")).json()["runs"] == []
    mine = await eve.ask("POST", "/agent-runs", {"agent": "support", "input": {}, "session_id": "s"}, idempotency_key="k")
    assert mine.status_code == 201 and mine.json()["run_id"] != run_id
    body = {"agents": ["support"], "worker": "w", "wait": 0}
    claimed = [await eve.ask("POST", "/worker/claims", body) for _ in range(3)]
    assert [answer.status_code for answer in claimed] == [200, 204, 204]
    assert claimed[0].json()["run"]["run_id"] == mine.json()["run_id"]
    assert (await store.runs.load(run_id)).state == "queued"

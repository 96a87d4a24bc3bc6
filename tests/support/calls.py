"""The client's requests, as short as they can be in a test."""

from typing import Any

import httpx

from .waiting import wait_until

ENDINGS = ("succeeded", "failed", "cancelled")


async def post_run(
    client: httpx.AsyncClient, agent: str = "support", run_input: Any = None, *, key: str | None = None, on: str = "", **members: Any
) -> httpx.Response:
    """``POST /agent-runs``."""
    headers = {} if key is None else {"idempotency-key": key}
    body: dict[str, Any] = {"agent": agent, "input": {} if run_input is None else run_input, **members}
    return await client.post(f"{on}/agent-runs", json=body, headers=headers)


async def new_run_id(client: httpx.AsyncClient, agent: str = "support", run_input: Any = None, **more: Any) -> str:
    """Create a run over HTTP; its id.

    Raises:
        AssertionError: It was not created.
    """
    response = await post_run(client, agent, run_input, **more)
    assert response.status_code == 201, (response.status_code, response.text)
    return response.json()["run_id"]


async def new_script(client: httpx.AsyncClient, *steps: list[Any], **more: Any) -> str:
    """Create a run of the scripted agent (`agents`); its id."""
    return await new_run_id(client, "script", {"steps": list(steps)}, **more)


async def snapshot(client: httpx.AsyncClient, run_id: str, *, on: str = "") -> dict[str, Any]:
    """``GET /agent-runs/{id}``, which must work."""
    response = await client.get(f"{on}/agent-runs/{run_id}")
    assert response.status_code == 200, (response.status_code, response.text)
    return response.json()


async def reaches(client: httpx.AsyncClient, run_id: str, state: str, *, timeout: float = 10) -> dict[str, Any]:
    """Wait until a run is in a state; its snapshot.

    Raises:
        AssertionError: It did not come there in time.
    """

    async def there() -> dict[str, Any] | None:
        shown = await snapshot(client, run_id)
        return shown if shown["state"] == state else None

    return await wait_until(there, f"{run_id} to be {state}", timeout=timeout)


async def ended(client: httpx.AsyncClient, run_id: str, *, timeout: int = 20) -> dict[str, Any]:
    """Hold until the run ended; its terminal snapshot.

    Raises:
        AssertionError: It did not end in time.
    """
    seen: dict[str, Any] = {}
    etag = ""
    for _ in range(timeout * 10):
        response = await client.get(f"/agent-runs/{run_id}", params={"wait": "2"}, headers={"if-none-match": etag} if etag else {})
        if response.status_code == 304:
            continue
        assert response.status_code == 200, (response.status_code, response.text)
        seen, etag = response.json(), response.headers["etag"]
        if seen["state"] in ENDINGS:
            return seen
    raise AssertionError(f"{run_id} did not end: {seen.get('state')} at {seen.get('sequence')}")


async def cancel(
    client: httpx.AsyncClient, run_id: str, *, on: str = "", wait: float | None = None, key: str | None = None, **body: Any
) -> httpx.Response:
    """``POST /agent-runs/{id}/cancel``."""
    headers = {} if key is None else {"idempotency-key": key}
    params = {} if wait is None else {"wait": f"{wait:g}"}
    return await client.post(f"{on}/agent-runs/{run_id}/cancel", json=body, params=params, headers=headers)


def check_problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The answer is a problem document with this status and code; its members.

    Raises:
        AssertionError: It is something else.
    """
    assert response.status_code == status, (response.status_code, response.text)
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["code"] == code and problem["status"] == status and problem["title"] and problem["type"], problem
    return problem

"""People of two tenants who are believed when they say who they are, and what they may: for everything behind authentication."""

from typing import Any

import httpx
from starlette.requests import Request

from reattach.core.errors import Unauthenticated
from reattach.http.auth import Principal


class Believed:
    """Takes ``x-who: tenant/subject scope scope``, with ``x-issued`` (Unix seconds) and ``x-ticket`` (a run id) where they are given."""

    async def authenticate(self, request: Request) -> Principal:
        """Who the headers say."""
        who, *scopes = request.headers.get("x-who", "").split(" ")
        tenant, slash, subject = who.partition("/")
        if not slash:
            raise Unauthenticated("say who you are")
        issued = request.headers.get("x-issued")
        return Principal(
            tenant=tenant,
            subject=subject,
            scopes=frozenset(scopes),
            issued_at=None if issued is None else float(issued),
            session=request.headers.get("x-login"),
            run_id=request.headers.get("x-ticket"),
        )


class Person:
    """Somebody's way of asking one replica."""

    def __init__(self, client: httpx.AsyncClient, who: str, **headers: str) -> None:
        self.client = client
        self.headers = {"x-who": who, **{name.replace("_", "-"): value for name, value in headers.items()}}

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """One request."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.request(method, path, json=body, headers={**self.headers, **named})

    async def create(self, agent: str = "support", **members: Any) -> str:
        """Create a run; its id."""
        answer = await self.ask("POST", "/agent-runs", {"agent": agent, "input": {}, **members})
        assert answer.status_code == 201, (answer.status_code, answer.text)
        return answer.json()["run_id"]

    async def code(self, method: str, path: str, body: Any = None, **headers: str) -> str:
        """One request; the code of its refusal, or its status."""
        answer = await self.ask(method, path, body, **headers)
        return answer.json()["code"] if answer.status_code >= 400 else str(answer.status_code)

"""From a request to its handler and back: authentication, methods, and every error as a problem."""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from time import perf_counter

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..core.errors import InternalError, MethodNotAllowed, NotFound, ReattachError
from ..obs.metrics import REQUESTS
from .auth import Principal, identify
from .problems import problem
from .service import Call, Endpoint, Service
from .wire import wire_of

_log = structlog.get_logger("reattach.http")


class Resource:
    """One path with its methods, as an ASGI application that never raises."""

    def __init__(self, service: Service, path: str, endpoints: Sequence[Endpoint]) -> None:
        self._service, self._path = service, path
        self._endpoints: Mapping[str, Endpoint] = {e.method: e for e in endpoints}
        if "GET" in self._endpoints:
            self._endpoints = {**self._endpoints, "HEAD": self._endpoints["GET"]}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        began, status = perf_counter(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            try:
                # No name for request and response: a stream would keep them for as long as it lives.
                await (await self._respond(Request(scope, receive)))(scope, receive, watched)
            except ReattachError as e:
                await problem(e)(scope, receive, watched)
        except ClientDisconnect:
            pass
        except asyncio.CancelledError:
            # A wait that ended because its client left; there is nobody to answer.
            if (wire := wire_of(scope)) is None or not wire.lost:
                raise
        seconds = perf_counter() - began
        # What clients may call a method is not for them to fill the metrics with.
        method = scope["method"] if scope["method"] in self._endpoints else "other"
        REQUESTS.labels(method, self._path, str(status)).observe(seconds)
        _log.debug("request", method=scope["method"], path=scope["path"], status=status, ms=round(seconds * 1000, 1))

    async def _respond(self, request: Request) -> ASGIApp:
        try:
            endpoint = self._endpoints.get(request.method)
            if endpoint is None:
                raise MethodNotAllowed(f"{self._path} takes {', '.join(self._endpoints)}", allow=list(self._endpoints))
            principal = await self._principal(endpoint, request)
            return await endpoint.handler(Call(self._service, endpoint, request, principal))
        except ReattachError as e:
            return problem(e)
        except ClientDisconnect:
            raise
        except Exception:
            return problem(_unexpected(request, self._path))

    async def _principal(self, endpoint: Endpoint, request: Request) -> Principal | None:
        if endpoint.action is None:
            return None
        service = self._service
        if endpoint.ticket:
            principal = await identify(service.authenticator, service.store.tickets, request)
        else:
            principal = await service.authenticator.authenticate(request)
        await service.revoked.check(principal)
        return principal


def _unexpected(request: Request, path: str) -> InternalError:
    request_id = secrets.token_hex(8)
    _log.exception("request.failed", request_id=request_id, method=request.method, path=path)
    return InternalError("something unexpected went wrong; the operator finds it under this request_id", request_id=request_id)


def routes(service: Service, table: Sequence[Endpoint]) -> list[BaseRoute]:
    """Starlette's routes for a table: one per path, so that a wrong method is answered with all right ones."""
    paths: dict[str, list[Endpoint]] = {}
    for endpoint in table:
        paths.setdefault(endpoint.path, []).append(endpoint)
    # A session's name is the client's own text and may have a slash, which arrives here decoded.
    return [
        Route(path.replace("{session_id}", "{session_id:path}"), Resource(service, path, endpoints)) for path, endpoints in paths.items()
    ]


async def nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer to a path that leads nowhere."""
    if scope["type"] == "http":
        await problem(NotFound("there is nothing at this address; see /openapi.json"))(scope, receive, send)

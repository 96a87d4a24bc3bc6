"""What every handler works with, and the one request it handles."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from ..core.errors import Forbidden, ReattachError, RunNotFound
from ..core.run import RunRecord
from ..core.settings import Settings
from ..core.snapshot import Snapshot
from ..store import Store
from ..tail import Hub, StreamEnded, changed
from .auth import Action, Authenticator, Authorizer, Principal, left, permitted
from .auth.revoked import Revoked
from .claims import Claims
from .held import Held
from .requests import decode_body, decode_query, fingerprint, idempotency_key, read_body
from .sight import hidden_scopes
from .streams import Streams
from .wire import wire_of

T = TypeVar("T")


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one API process."""

    store: Store
    hub: Hub
    settings: Settings
    authenticator: Authenticator
    authorizer: Authorizer
    revoked: Revoked
    held: Held
    streams: Streams
    claims: Claims


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the route table: what is served where, and all that the OpenAPI document says of it.

    Attributes:
        method: ``GET`` (which serves HEAD too) or ``POST``.
        path: With ``{run_id}`` where the run's id stands.
        handler: Parses, authorises, calls, encodes.
        name: The operation's id.
        summary: One sentence.
        action: What the caller must be allowed to do; None for what everybody may read.
        ticket: Whether a ticket for the path's run is enough.
        query: Type of the query string.
        body: Type of the body; None when there is none.
        body_optional: Whether an empty body means an empty object.
        headers: Request headers it reads.
        answers: Status → what it means, media type → type of the content.
        errors: What it refuses with, besides what every endpoint of its kind may.
    """

    method: str
    path: str
    handler: "Callable[[Call], Awaitable[ASGIApp]]"
    name: str
    summary: str
    action: Action | None
    ticket: bool = False
    query: type[Any]
    body: type[Any] | None = None
    body_optional: bool = False
    headers: tuple[str, ...] = ()
    answers: dict[int, "Reply"]
    errors: tuple[type[ReattachError], ...] = ()


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of an endpoint: what it means, its headers, and the content's type by media type."""

    meaning: str
    content: dict[str, Any] = {}
    headers: tuple[str, ...] = ()


class Call:
    """One request on its way through a handler."""

    def __init__(self, service: Service, endpoint: Endpoint, request: Request, principal: Principal | None) -> None:
        self.service, self.endpoint, self.request = service, endpoint, request
        self._principal = principal
        self._raw = b""

    @property
    def principal(self) -> Principal:
        """Who asks."""
        assert self._principal is not None, "a public endpoint has no principal"
        return self._principal

    @property
    def run_id(self) -> str:
        """The path's run id, as it was sent."""
        return self.request.path_params["run_id"]

    def query(self, kind: type[T]) -> T:
        """The query string.

        Raises:
            InvalidRequest: See `decode_query`.
        """
        return decode_query(self.request, kind)

    async def body(self, kind: type[T], *, depth: int = 1) -> T:
        """The body; an empty one is an empty object where the endpoint says so.

        Args:
            kind: What it is.
            depth: Levels of it above a payload.

        Raises:
            PayloadTooLarge: See `read_body`.
            UnsupportedMediaType: See `read_body`.
            InvalidRequest: See `decode_body`.
        """
        limit = self.service.settings.max_body
        self._raw = await read_body(self.request, limit=limit)
        if not self._raw and self.endpoint.body_optional:
            self._raw = b"{}"
        return decode_body(self._raw, kind, limit=limit, depth=depth)

    def key(self) -> tuple[str | None, str]:
        """The idempotency key, and the fingerprint of the request (after `body`).

        Raises:
            InvalidRequest: The key is not allowed.
        """
        return idempotency_key(self.request), fingerprint(f"{self.endpoint.method} {self.request.url.path}", self._raw)

    async def authorise(self, record: RunRecord | None = None) -> None:
        """Check that the caller may do what this endpoint does.

        Raises:
            RunNotFound: The run belongs to another tenant; nothing tells it from one that does not exist.
            Forbidden: The caller's own tenant does not let it.
        """
        if record is not None and record.tenant != self.principal.tenant:
            raise RunNotFound()
        assert self.endpoint.action is not None
        if not await permitted(self.service.authorizer, self.principal, self.endpoint.action, record):
            await self.service.revoked.check(self.principal)  # it may have been revoked since this request came in
            raise Forbidden(f"{self.endpoint.action} is not allowed to this caller here")

    async def run(self) -> RunRecord:
        """The path's run, if the caller may do this to it.

        Raises:
            RunNotFound: There is none for this caller.
            Forbidden: See `authorise`.
            StoreUnavailable: Redis cannot be reached.
        """
        record = await self.service.store.runs.load(self.run_id)
        await self.authorise(record)
        return record

    async def hidden(self, record: RunRecord, scopes: Iterable[str]) -> frozenset[str]:
        """Those of these scopes whose events the caller, who may read the run, may not see.

        Raises:
            AuthUnavailable: It cannot be found out now.
        """
        return await hidden_scopes(self.service.authorizer, self.principal, record, scopes)

    async def snapshot(self, run_id: str) -> Snapshot:
        """A run's snapshot as the caller sees it: without what events had a part in that the caller may not see.

        Raises:
            RunNotFound: There is no such run.
            AuthUnavailable: What the caller may see cannot be found out now.
            StoreUnavailable: Redis cannot be reached.
        """
        folded = await self.service.store.checkpoints.fold(run_id)
        return folded.view(await self.hidden(folded.record, folded.fold.scopes))

    def leave_with_client(self) -> None:
        """Be cancelled when the client leaves: nobody is there for the answer."""
        task = asyncio.current_task()
        wire = wire_of(self.request.scope)
        if wire is not None and task is not None:
            wire.on_lost(task.cancel)

    def patience(self, seconds: float) -> float:
        """How long this request may wait, of the seconds it asks for: not longer than its credential is good."""
        rest = left(self.principal)
        return seconds if rest is None else max(0.0, min(seconds, rest))

    async def news(self, run_id: str, after: int, seconds: float) -> int:
        """Wait for an event after `after`; the latest sequence known. A client that leaves, and a credential that ends, end the wait."""
        self.leave_with_client()
        try:
            async with self.service.held.one(self.principal):
                return await changed(self.service.hub, run_id, after, self.patience(seconds))
        except StreamEnded:
            return after


def answer(content: Any, status: int = 200, **headers: str) -> Response:
    """A JSON response; header names with ``_`` for ``-``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(msgspec.json.encode(content), status, {"cache-control": "private, no-cache", **named}, "application/json")

"""The OpenAPI 3.1 document, made from the route table and the types: it cannot promise what is not served."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Final

import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from ..core.errors import (
    AuthUnavailable,
    Forbidden,
    InternalError,
    InvalidRequest,
    PayloadTooLarge,
    ReattachError,
    RunNotFound,
    StoreUnavailable,
    TooManyRequests,
    Unauthenticated,
    UnsupportedMediaType,
)
from ..core.version import __version__
from .auth.ticketed import PARAMETER
from .bodies import EXAMPLE_RUN, MAX_KEY
from .examples import PROBLEM_EXTRAS, STREAM, example_of
from .problems import MEDIA_TYPE, document
from .requests import schema_of
from .service import Call, Endpoint, Reply

_SECURITY: Final[dict[str, Any]] = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A signed token; where the deployment says so, in a cookie as well. A deployment for one machine alone needs none.",
    },
    "ticket": {"type": "apiKey", "in": "query", "name": PARAMETER, "description": "Made by makeTicket; for reading one run."},
}
_REF: Final = "#/components/schemas/{name}"

REQUEST_HEADERS: Final[Mapping[str, dict[str, Any]]] = {
    "Idempotency-Key": {
        "description": "Names this request for as long as the run's record lives; belongs to one tenant and initiator.",
        "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[ -~]+$"},
        "example": "8e03978e-40d5-43dd-bc93-6894a57f9324",
    },
    "If-None-Match": {"description": "ETag of a known snapshot.", "schema": {"type": "string"}, "example": '"9"'},
    "Last-Event-ID": {
        "description": "Cursor: 184 or run_…:184. Wins over ?after=, since a browser keeps the old URL when it reconnects.",
        "schema": {"type": "string"},
        "example": f"{EXAMPLE_RUN}:184",
    },
    "Accept": {"description": "text/event-stream or application/json.", "schema": {"type": "string"}, "example": "text/event-stream"},
}

RESPONSE_HEADERS: Final[Mapping[str, dict[str, Any]]] = {
    "Location": {"description": "The run.", "schema": {"type": "string"}, "example": f"/agent-runs/{EXAMPLE_RUN}"},
    "ETag": {"description": "The snapshot's sequence, quoted.", "schema": {"type": "string"}, "example": '"9"'},
    "Idempotency-Replayed": {"description": "The run existed already.", "schema": {"type": "string", "const": "true"}, "example": "true"},
    "Retry-After": {"description": "Seconds after which to try again.", "schema": {"type": "integer"}, "example": 2},
}


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error (RFC 9457). `code` is stable; members beyond these are listed with the errors that have them."""

    type: Annotated[str, msgspec.Meta(description="urn:reattach:problem: and the code.")]
    title: str
    status: int
    code: str
    detail: Annotated[str, msgspec.Meta(description="What was wrong and what is allowed, for people.")]


def build(table: Iterable[Endpoint]) -> dict[str, Any]:
    """The document of a route table."""
    endpoints = list(table)
    kinds = [Problem, *(k for e in endpoints for k in _kinds(e))]
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Reattach",
            "version": __version__,
            "summary": "Agent runs that outlive their connections.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": msgspec.json.schema_components(list(dict.fromkeys(kinds)), ref_template=_REF)[1],
            "securitySchemes": _SECURITY,
        },
    }


def _kinds(endpoint: Endpoint) -> list[type[Any]]:
    found = [k for reply in endpoint.answers.values() for k in reply.content.values() if k not in (str, dict)]
    return found if endpoint.body is None else [*found, endpoint.body]


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": endpoint.name, "summary": endpoint.summary, "parameters": _parameters(endpoint)}
    operation["security"] = [] if endpoint.action is None else [{"token": []}, {"ticket": []}] if endpoint.ticket else [{"token": []}]
    if endpoint.body is not None:
        content = {"application/json": {"schema": _ref(endpoint.body), "example": example_of(endpoint.body)}}
        operation["requestBody"] = {"required": not endpoint.body_optional, "content": content}
    responses = {str(status): _reply(reply) for status, reply in endpoint.answers.items()}
    operation["responses"] = {**responses, **_problems(endpoint)}
    return operation


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if "{run_id}" in endpoint.path:
        found.append({"name": "run_id", "in": "path", "required": True, "schema": {"type": "string"}, "example": EXAMPLE_RUN})
    if "{session_id}" in endpoint.path:
        found.append({"name": "session_id", "in": "path", "required": True, "schema": {"type": "string"}, "example": "conversation-17"})
    for name, schema in schema_of(endpoint.query)["properties"].items():
        schema = dict(schema)
        description = schema.pop("description", "")
        found.append({"name": name, "in": "query", "required": False, "description": description, "schema": schema})
    found.extend({"name": name, "in": "header", "required": False, **REQUEST_HEADERS[name]} for name in endpoint.headers)
    return found


def _reply(reply: Reply) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for media, kind in reply.content.items():
        if kind is str:
            content[media] = {"schema": {"type": "string"}} | ({"example": STREAM} if media == "text/event-stream" else {})
        elif kind is dict:
            content[media] = {"schema": {"type": "object"}}
        else:
            content[media] = {"schema": _ref(kind), "example": example_of(kind)}
    answer: dict[str, Any] = {"description": reply.meaning}
    if content:
        answer["content"] = content
    if reply.headers:
        answer["headers"] = {name: RESPONSE_HEADERS[name] for name in reply.headers}
    return answer


def errors_of(endpoint: Endpoint) -> list[type[ReattachError]]:
    """Everything an endpoint may refuse with: what its row says, and what follows from its kind."""
    found: list[type[ReattachError]] = [*endpoint.errors, InternalError]
    if endpoint.action is not None:
        found += [InvalidRequest, Unauthenticated, Forbidden, AuthUnavailable, StoreUnavailable, TooManyRequests]
    if "{run_id}" in endpoint.path:
        found.append(RunNotFound)
    if endpoint.body is not None:
        found += [PayloadTooLarge, UnsupportedMediaType]
    return list(dict.fromkeys(found))


def _problems(endpoint: Endpoint) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for error in sorted(errors_of(endpoint), key=lambda e: (e.status, e.code)):
        answer = answers.setdefault(
            str(error.status), {"description": "", "content": {MEDIA_TYPE: {"schema": _ref(Problem), "examples": {}}}}
        )
        answer["description"] = f"{answer['description']} {error.code}: {error.title()}".strip()
        answer["content"][MEDIA_TYPE]["examples"][error.code] = {"value": document(error(**PROBLEM_EXTRAS.get(error.code, {})))}
        if error.status in (429, 503):
            answer["headers"] = {"Retry-After": RESPONSE_HEADERS["Retry-After"]}
    return answers


def _ref(kind: type[Any]) -> dict[str, str]:
    return {"$ref": _REF.format(name=kind.__name__)}


@cache
def _encoded() -> bytes:
    from .routes import TABLE

    return msgspec.json.encode(build(TABLE))


async def show_openapi(_: Call) -> ASGIApp:
    """``GET /openapi.json``."""
    return Response(_encoded(), headers={"cache-control": "no-cache"}, media_type="application/json")

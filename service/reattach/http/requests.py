"""Reading requests: bodies, query strings and keys. Refusals name the field, what was wrong and what is allowed."""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from starlette.requests import Request

from ..core.errors import InvalidRequest, PayloadTooLarge, UnsupportedMediaType
from ..core.payload import MAX_DEPTH, canonical, check_json
from .bodies import MAX_KEY

T = TypeVar("T")

BODY_TIMEOUT: Final = 30.0
"""A body that takes longer to arrive is given up, seconds."""

_MESSAGE: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?", re.DOTALL)
_FORM: Final = re.compile(r" matching regex .*", re.DOTALL)
_NAMED: Final = re.compile(r"(?:missing required|unknown) field `([^`]*)`")
_KEY: Final = re.compile(rf"[ -~]{{1,{MAX_KEY}}}")


async def read_body(request: Request, *, limit: int) -> bytes:
    """The body, never more of it than `limit` bytes.

    Raises:
        PayloadTooLarge: It is larger, by its declared or by its actual length.
        UnsupportedMediaType: It is not declared to be JSON, or declared to be compressed.
        InvalidRequest: It did not arrive in time.
        starlette.requests.ClientDisconnect: The client left.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise _too_large(limit)
    except TimeoutError:
        raise InvalidRequest(f"the body did not arrive within {BODY_TIMEOUT:g} seconds") from None
    if body:
        _check_media_type(request.headers.get("content-type", ""), request.headers.get("content-encoding", ""))
    return bytes(body)


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"a body is at most {limit} bytes here", field="body", max_bytes=limit)


def _check_media_type(header: str, encoding: str) -> None:
    if encoding.strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("send the body as it is, without Content-Encoding")
    media, *parameters = (part.strip().lower() for part in header.split(";"))
    charset = next((p.partition("=")[2].strip('" ') for p in parameters if p.startswith("charset=")), "utf-8")
    if media != "application/json" or charset not in ("utf-8", "utf8"):
        raise UnsupportedMediaType("send the body as application/json in UTF-8")


def decode_body(raw: bytes, kind: type[T], *, limit: int, depth: int = 1) -> T:
    """Read a body as `kind`, in which a payload is `depth` levels deep.

    Raises:
        InvalidRequest: It is not JSON, or not this JSON.
    """
    if not raw:
        raise InvalidRequest("the body is empty; send a JSON object", field="body")
    # More levels than a payload may have: the payload is inside the body.
    line = check_json(raw, max_bytes=limit, what="body", max_depth=MAX_DEPTH + depth)
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.ValidationError as e:
        explain(e, kind)


def decode_query(request: Request, kind: type[T]) -> T:
    """Read the query string as `kind`.

    Raises:
        InvalidRequest: A parameter is unknown, given twice, or has no valid value.
    """
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise InvalidRequest(f"the query parameter {name} was given twice", field=name)
        given[name] = value
    try:
        query = msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as e:
        explain(e, kind)
    for name, value in given.items():
        # "null" is read as no value, and a client that prints its missing filter would be shown everything.
        if getattr(query, name) is None:
            raise InvalidRequest(f"{name}: {value} is no value; leave it out. {fields_of(kind)[name]}".strip(), field=name)
    return query


def idempotency_key(request: Request) -> str | None:
    """The Idempotency-Key header, None when there is none.

    Raises:
        InvalidRequest: It is empty, too long, not printable ASCII, or there are two that differ.
    """
    given = set(request.headers.getlist("idempotency-key"))
    if not given:
        return None
    if len(given) > 1 or _KEY.fullmatch(key := given.pop()) is None:
        raise InvalidRequest(f"one Idempotency-Key of 1 to {MAX_KEY} printable ASCII characters is allowed", field="Idempotency-Key")
    return key


def fingerprint(endpoint: str, body: bytes) -> str:
    """What a repeated request is compared by: where it went and its body as parsed JSON."""
    return hashlib.sha256(endpoint.encode() + b"\n" + canonical(body or b"{}")).hexdigest()


def explain(error: msgspec.ValidationError, kind: type[Any]) -> NoReturn:
    """Turn a validation failure into one that teaches.

    Raises:
        InvalidRequest: Always.
    """
    match = _MESSAGE.fullmatch(str(error))
    what, path = (match["what"], match["path"] or "") if match else (str(error), "")
    fields = fields_of(kind)
    if named := _NAMED.search(what):
        field = ".".join(part for part in (path, named[1]) if part)
        if "unknown" in what:
            known = f"; known: {', '.join(fields) or 'none'}" if not path else ""
            raise InvalidRequest(f"{field} is unknown{known}", field=field) from None
        raise InvalidRequest(f"{field} is missing. {fields.get(field, '')}".strip(), field=field) from None
    # What is said of a field tells its form in words; the pattern is for machines.
    what, field = _FORM.sub(" of another form", what), path or "body"
    raise InvalidRequest(f"{field}: {what.replace('`', '')}. {fields.get(path.partition('.')[0], '')}".strip(), field=field) from None


@cache
def fields_of(kind: type[Any]) -> Mapping[str, str]:
    """A type's fields and what is said of them."""
    return {name: facts.get("description", "") for name, facts in schema_of(kind)["properties"].items()}


@cache
def schema_of(kind: type[Any]) -> dict[str, Any]:
    """A type's JSON schema."""
    return msgspec.json.schema_components([kind])[1][kind.__name__]

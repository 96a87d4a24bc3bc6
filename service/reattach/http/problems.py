"""Errors as responses: `problem` is the only place where one becomes bytes (RFC 9457).

``type`` is ``urn:reattach:problem:`` and the code; it names the kind and is not meant to be fetched. Members beyond the standard ones are
the error's own (``field``, ``latest_sequence`` …).
"""

import math
import random
from typing import Any, Final

import msgspec
from starlette.responses import Response

from ..core.errors import ReattachError
from ..obs.metrics import PROBLEMS
from .auth import InvalidCredential

MEDIA_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "urn:reattach:problem:"
_RETRY_AFTER: Final = {429: 1.0, 503: 1.0}


def document(error: ReattachError) -> dict[str, Any]:
    """The problem document of an error."""
    return {
        "type": TYPE_PREFIX + error.code,
        "title": error.title(),
        "status": error.status,
        "code": error.code,
        "detail": error.detail,
        **error.extra,
    }


def retry_after(error: ReattachError) -> int | None:
    """Whole seconds for ``Retry-After``: up to three more than asked for, so that clients that failed together do not return together."""
    seconds = error.retry_after or _RETRY_AFTER.get(error.status)
    return None if seconds is None else math.ceil(seconds + random.uniform(0, 3))


def problem(error: ReattachError) -> Response:
    """The response for an error."""
    PROBLEMS.labels(error.code).inc()
    headers = {"cache-control": "no-store"}
    if (seconds := retry_after(error)) is not None:
        headers["retry-after"] = str(seconds)
    if error.status == 401:
        # RFC 6750 section 3.1: who sent nothing is told what to send, who sent something that it does not count.
        headers["www-authenticate"] = 'Bearer error="invalid_token"' if isinstance(error, InvalidCredential) else "Bearer"
    if error.status == 405:
        headers["allow"] = ", ".join(error.extra.get("allow", ()))
    return Response(msgspec.json.encode(document(error)), error.status, headers, MEDIA_TYPE)

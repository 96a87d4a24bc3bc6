"""Pages of other sites: off unless their exact origins are configured. Headers are added as the response starts; no body is held."""

import re
from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from ..core.errors import Forbidden, InvalidRequest
from .auth import names
from .problems import problem

ALLOWED = ("authorization", "last-event-id", "idempotency-key", "content-type", "if-none-match")
EXPOSED = ("Location", "ETag", "Idempotency-Replayed", "Retry-After")

_ORIGIN: Final = re.compile(r"null|[a-z][a-z0-9+.-]*://[^/?#@\s*A-Z]+")


def origins_of(text: str) -> list[str]:
    """The origins in a setting, as browsers send them.

    Raises:
        InvalidRequest: One of them no browser ever sends.
    """
    origins = names(text)
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise InvalidRequest(f"{origin} is not an origin: give scheme, host and port, like http://localhost:8000", field="cors")
    return origins


class Cors(CORSMiddleware):
    """Starlette's middleware with our origins and headers, and our problems for refusals."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(app, allow_origins=origins, allow_methods=("GET", "HEAD", "POST"), allow_headers=ALLOWED, expose_headers=EXPOSED)

    def preflight_response(self, request_headers: Headers) -> Response:
        """Whether a page of another site may send the request it is about to send."""
        response = super().preflight_response(request_headers)
        if response.status_code == 200:
            return Response(status_code=204, headers={k: v for k, v in response.headers.items() if not k.startswith("content-")})
        return problem(Forbidden("this origin, method or header is not allowed to pages of other sites; see the setting cors"))

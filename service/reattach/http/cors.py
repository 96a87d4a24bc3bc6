"""Pages of other sites: off unless their exact origins are configured. Headers are added as the response starts; no body is held."""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from ..core.errors import Forbidden
from .problems import problem

ALLOWED = ("authorization", "last-event-id", "idempotency-key", "content-type", "if-none-match")
EXPOSED = ("Location", "ETag", "Idempotency-Replayed", "Retry-After")


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

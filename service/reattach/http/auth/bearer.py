"""Where a request carries its token: in ``Authorization`` (RFC 6750 section 2.1), else in a cookie.

A browser sends a cookie whoever made it send the request. So with a cookie a page's origin counts: a request that changes something says
where it comes from, and none comes from another site. What another site's page may read is decided by the browser, see `http.cors`.
"""

from typing import Final

from starlette.requests import Request

from ...core.errors import Forbidden, Unauthenticated
from ...core.settings import Settings
from .hosts import names
from .principal import InvalidCredential, Principal
from .tokens import Tokens

_SAFE: Final = ("GET", "HEAD")
_SCHEME: Final = "bearer "


class TokenAuthenticator:
    """Everybody has a token. The header wins over the cookie."""

    def __init__(self, tokens: Tokens, settings: Settings) -> None:
        """Read tokens where the settings say.

        Args:
            tokens: Checks them.
            settings: `cookie` is its name; `cors` are origins that count as this API's own.
        """
        self._tokens, self._cookie = tokens, settings.cookie
        self._origins = frozenset(names(settings.cors))

    async def authenticate(self, request: Request) -> Principal:
        """Who the request's token is about.

        Raises:
            Unauthenticated: It has none, or one that does not count.
            Forbidden: It has one in a cookie and comes from another site's page.
            AuthUnavailable: There are no keys to check it with.
        """
        header = bearer(request)
        if header is not None:
            return await self._tokens.principal(header)
        if self._cookie and (token := cookie(request, self._cookie)) is not None:
            self._check_origin(request)
            return await self._tokens.principal(token)
        raise Unauthenticated("send a token: Authorization: Bearer …" + (f", or the cookie {self._cookie}" if self._cookie else ""))

    def _check_origin(self, request: Request) -> None:
        origins = set(request.headers.getlist("origin"))
        own = not origins and request.method in _SAFE
        if len(origins) == 1:
            origin = origins.pop()
            own = origin in self._origins or origin.partition("://")[2].lower() == request.headers.get("host", "").lower() != ""
        if not own:
            raise Forbidden("with a cookie only this API's own pages are answered, and changes need an Origin; see the setting cors")


def bearer(request: Request) -> str | None:
    """The token in the header; None when there is no such header.

    Raises:
        InvalidCredential: It holds something else, or there are two that differ.
    """
    given = set(request.headers.getlist("authorization"))
    if not given:
        return None
    value = given.pop()
    if given or not value.lower().startswith(_SCHEME):
        raise InvalidCredential("one Authorization: Bearer … is understood here")
    return value[len(_SCHEME) :].strip(" ")


def cookie(request: Request, name: str) -> str | None:
    """A cookie's value; None when there is none.

    Raises:
        InvalidCredential: There are two that differ: one may have been planted by a neighbouring site.
    """
    given: set[str] = set()
    for part in ";".join(request.headers.getlist("cookie")).split(";"):
        found, _, value = part.strip(" \t").partition("=")
        if found == name:
            given.add(value.strip('"'))
    if len(given) > 1:
        raise InvalidCredential(f"there are two cookies {name} that differ")
    return given.pop() if given else None

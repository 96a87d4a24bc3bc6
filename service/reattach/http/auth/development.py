"""The development side of both seams: everybody is the developer, who may do everything."""

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from ...core.errors import Forbidden
from ...core.run import RunRecord
from ...core.settings import Settings
from .hosts import is_loopback, names
from .principal import Action, Principal

DEVELOPMENT_TENANT: Final = "dev"
DEVELOPMENT_SUBJECT: Final = "developer"


class DevelopmentAuthenticator:
    """Everybody is the developer. Only ever on this machine: see `check_bind`.

    A web page of any site can make a browser send requests to this machine, under a name of its own that resolves here. Such a request
    betrays itself by its Host or Origin and is refused.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        """Allow loopback names, and names without a dot.

        Args:
            settings: `hosts` are further names in Host, `cors` further origins.
        """
        settings = settings or Settings()
        self._hosts = frozenset(names(settings.hosts))
        self._origins = frozenset(names(settings.cors))

    async def authenticate(self, request: Request) -> Principal:
        """The developer.

        Raises:
            Forbidden: Host or Origin is neither loopback nor configured.
        """
        host, origin = request.headers.get("host"), request.headers.get("origin")
        if host is not None and not self._local(f"//{host}"):
            raise Forbidden("without authentication only requests to this machine's own names are answered; see the setting hosts")
        if origin is not None and origin not in self._origins and not self._local(origin):
            raise Forbidden("without authentication only pages of this machine are answered; see the setting cors")
        return Principal(tenant=DEVELOPMENT_TENANT, subject=DEVELOPMENT_SUBJECT)

    def _local(self, url: str) -> bool:
        try:
            name = urlsplit(url).hostname or ""
        except ValueError:
            return False
        # Nobody can register a name without a dot, so no foreign page can have one.
        return name in self._hosts or is_loopback(name) or (name != "" and not set(".:") & set(name))


class DevelopmentAuthorizer:
    """The developer may do everything."""

    async def may(self, principal: Principal, action: Action, record: RunRecord | None) -> bool:
        """Yes."""
        return True

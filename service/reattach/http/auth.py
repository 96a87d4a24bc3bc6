"""Who asks, and whether they may: two seams, and the development side of both."""

import ipaddress
from typing import Final, Literal, Protocol
from urllib.parse import urlsplit

import msgspec
import structlog
from starlette.requests import Request

from ..core.errors import Forbidden, InvalidRequest
from ..core.run import RunRecord
from ..core.settings import Settings

_log = structlog.get_logger("reattach.auth")

Action = Literal["create", "list", "read", "cancel", "input", "limits", "work"]

DEVELOPMENT_TENANT: Final = "dev"
DEVELOPMENT_SUBJECT: Final = "developer"


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who a request comes from. Runs belong to the tenant; the subject is their initiator."""

    tenant: str
    subject: str
    scopes: frozenset[str] = frozenset()


class Authenticator(Protocol):
    """Finds out who a request comes from."""

    async def authenticate(self, request: Request) -> Principal:
        """The request's principal.

        Raises:
            Unauthenticated: It carries no valid credential.
            Forbidden: It comes from where nobody may ask.
        """
        ...


class Authorizer(Protocol):
    """Decides what a principal may do. Other tenants' runs never get this far: they do not exist for the caller."""

    async def may(self, principal: Principal, action: Action, record: RunRecord | None) -> bool:
        """Whether the principal may do this to this run (None: to no run in particular). Asked again while a stream is open.

        ``work`` is asked for a worker in another language: without a run when it asks for one, then with the run it would be given, and
        with everything it does to it.
        """
        ...


async def permitted(authorizer: Authorizer, principal: Principal, action: Action, record: RunRecord | None) -> bool:
    """Whether a principal may do this: to another tenant's run never, whatever the authorizer says."""
    if record is not None and record.tenant != principal.tenant:
        return False
    return await authorizer.may(principal, action, record)


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


def names(text: str) -> list[str]:
    """The parts of a comma-separated setting."""
    return [part.strip() for part in text.split(",") if part.strip()]


def is_loopback(host: str) -> bool:
    """Whether a name or address can only mean this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_bind(settings: Settings, authenticator: Authenticator) -> None:
    """Refuse to serve the world without authentication; say it loudly where there is none.

    Raises:
        InvalidRequest: The address to listen on is reachable from elsewhere.
    """
    if not isinstance(authenticator, DevelopmentAuthenticator):
        return
    if not is_loopback(settings.host):
        raise InvalidRequest(
            f"without authentication the API serves this machine only: listen on 127.0.0.1 instead of {settings.host}", field="host"
        )
    _log.warning(
        "auth.development", says="NO AUTHENTICATION: everybody on this machine is the developer and may do everything", host=settings.host
    )

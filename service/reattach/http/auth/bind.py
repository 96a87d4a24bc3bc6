"""Where the API may listen."""

import structlog

from ...core.errors import InvalidRequest
from ...core.settings import Settings
from .development import DevelopmentAuthenticator
from .hosts import is_loopback
from .principal import Authenticator

_log = structlog.get_logger("reattach.auth")


def check_bind(settings: Settings, authenticator: Authenticator) -> None:
    """Refuse to serve the world without authentication; say it loudly where there is none.

    Raises:
        InvalidRequest: The address to listen on is reachable from elsewhere.
    """
    if not isinstance(authenticator, DevelopmentAuthenticator):
        return
    if not is_loopback(settings.host):
        raise InvalidRequest(
            f"without authentication the API serves this machine only: listen on 127.0.0.1 instead of {settings.host}, "
            "or say with --jwt-keys what callers' tokens are checked with",
            field="host",
        )
    _log.warning(
        "auth.development", says="NO AUTHENTICATION: everybody on this machine is the developer and may do everything", host=settings.host
    )

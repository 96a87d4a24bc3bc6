"""Which authentication and which policy a process has, by its settings."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ...core.errors import InvalidRequest
from ...core.settings import Settings
from ...store import Store
from .bearer import TokenAuthenticator
from .development import DevelopmentAuthenticator, DevelopmentAuthorizer
from .policies import open_policy
from .policy import OwnPolicy
from .principal import Authenticator, Authorizer
from .sources import key_ring
from .tokens import Tokens


@asynccontextmanager
async def build_auth(settings: Settings, store: Store) -> AsyncGenerator[tuple[Authenticator, Authorizer], None]:
    """Who asks and whether they may, for the length of a block: by tokens where there are keys for them, else everybody is the developer.

    Args:
        settings: `jwt_keys` and `policy` decide.
        store: Open.

    Raises:
        InvalidRequest: The settings do not go together, or the keys cannot be read, or the policy not be used.
    """
    if not settings.jwt_keys:
        if settings.cookie:
            raise InvalidRequest("a cookie carries a token, and without --jwt-keys there are none", field="cookie")
        async with open_policy(settings, DevelopmentAuthorizer()) as policy:
            yield DevelopmentAuthenticator(settings), policy
        return
    ring = await key_ring(settings.jwt_keys)
    try:
        async with open_policy(settings, OwnPolicy()) as policy:
            yield TokenAuthenticator(Tokens(ring, settings), settings), policy
    finally:
        await ring.close()

"""The application: the route table, served."""

from typing import Final

from starlette.routing import Router
from starlette.types import ASGIApp

from ..core.settings import Settings
from ..store import Store
from ..tail import Hub
from .auth import Authenticator, Authorizer, check_bind
from .auth.revoked import Revoked, Unrevoked
from .claims import Claims
from .cors import Cors, origins_of
from .dispatch import nowhere, routes
from .held import Held
from .pages import page_routes
from .routes import TABLE
from .service import Service
from .streams import Streams

_LEASES: Final = 4
"""Keep-alive intervals for which counts as open what a process that died had open."""


def create_app(store: Store, hub: Hub, settings: Settings, authenticator: Authenticator, authorizer: Authorizer) -> ASGIApp:
    """The API as an ASGI application. Event streams need `reattach.http.server` under it.

    Args:
        store: Open.
        hub: Started; closing it ends every stream.
        settings: Limits and times.
        authenticator: Who asks.
        authorizer: Whether they may.

    Raises:
        InvalidRequest: There is no real authentication and the address to listen on can be reached from elsewhere.
    """
    check_bind(settings, authenticator)
    claims = Claims(store)
    hub.at_close(claims.close)
    revoked = Revoked(store.revocations, interval=settings.keepalive)
    hub.hear(revoked.heard)
    hub.at_close(revoked.close)
    authorizer = Unrevoked(authorizer, revoked)
    held = Held(store.limits, lease=_LEASES * settings.keepalive)
    hub.at_close(held.close)
    service = Service(
        store=store,
        hub=hub,
        settings=settings,
        authenticator=authenticator,
        authorizer=authorizer,
        revoked=revoked,
        held=held,
        streams=Streams(store, hub, settings, authorizer, revoked),
        claims=claims,
    )
    # The bare router: every resource answers its own errors, and each layer around a stream costs memory for as long as it is open.
    app = Router([*routes(service, TABLE), *page_routes(service)], redirect_slashes=False, default=nowhere)
    origins = origins_of(settings.cors)
    return Cors(app, origins) if origins else app

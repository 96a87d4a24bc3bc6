"""The application: the route table, served."""

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from ..core.settings import Settings
from ..store import Store
from ..tail import Hub
from .auth import Authenticator, Authorizer, check_bind, names
from .cors import Cors
from .dispatch import HANDLERS, routes
from .routes import TABLE
from .service import Service
from .streams import Streams


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
    service = Service(
        store=store,
        hub=hub,
        settings=settings,
        authenticator=authenticator,
        authorizer=authorizer,
        streams=Streams(store, hub, settings, authorizer),
    )
    origins = names(settings.cors)
    app = Starlette(
        routes=routes(service, TABLE),
        exception_handlers=HANDLERS,
        middleware=[Middleware(Cors, origins)] if origins else [],
    )
    app.router.redirect_slashes = False
    return app

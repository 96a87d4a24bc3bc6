"""``reattach token``: a token for trying things out."""

import asyncio
from typing import Any, Final

import click
import jwt

from ..core.errors import InvalidRequest
from ..core.settings import Settings
from ..http.auth.expiry import now
from ..http.auth.hosts import names
from ..http.auth.keys import Key
from ..http.auth.sources import key_ring
from ..http.auth.tokens import Tokens
from .console import write
from .help import Command
from .options import with_settings

_SETTINGS: Final = ("jwt_keys", "jwt_issuer", "jwt_audience", "jwt_tenant", "jwt_subject", "jwt_scopes", "jwt_lifetime")


@click.command(cls=Command, short_help="Make a token, where the keys are a secret.")
@click.argument("subject")
@click.option("--tenant", default="dev", show_default=True, metavar="TEXT", help="Tenant it is for.")
@click.option("--scope", "scopes", multiple=True, metavar="TEXT", help="Scope that it has; may be given several times.")
@click.option("--lifetime", default=3600.0, show_default=True, type=click.FloatRange(1), metavar="SECONDS", help="How long it is good for.")
@with_settings(_SETTINGS)
def token(settings: Settings, subject: str, tenant: str, scopes: tuple[str, ...], lifetime: float) -> None:
    """Make a token that a service with the same secret takes, e.g. to try it with curl.

        openssl rand -hex 32 > secret
        reattach serve --jwt-keys secret
        curl -H "Authorization: Bearer $(reattach token ann --jwt-keys secret)" http://127.0.0.1:8080/limits

    In production an identity provider makes them, and the service has its public keys only.
    """
    write(asyncio.run(_token(settings, subject, tenant, scopes, lifetime)) + "\n")


async def _token(settings: Settings, subject: str, tenant: str, scopes: tuple[str, ...], lifetime: float) -> str:
    if not settings.jwt_keys or "://" in settings.jwt_keys:
        raise InvalidRequest("give --jwt-keys, a file with a secret or env:NAME", field="jwt_keys")
    ring = await key_ring(settings.jwt_keys)
    key = next((key for key in await ring.known() if key.algorithm == "HS256"), None)
    if key is None:
        raise InvalidRequest("these are public keys: whoever has the private one makes the tokens", field="jwt_keys")
    made = jwt.encode(_claims(settings, subject, tenant, scopes, lifetime), key.value, "HS256", headers=_named(key))
    # What no service would take is not handed out.
    await Tokens(ring, settings).principal(made)
    return made


def _claims(settings: Settings, subject: str, tenant: str, scopes: tuple[str, ...], lifetime: float) -> dict[str, Any]:
    moment = int(now())  # not later than now, or services without a leeway would not take it yet
    claims: dict[str, Any] = {"iat": moment, "exp": moment + round(lifetime), settings.jwt_subject: subject}
    if not settings.jwt_tenant.startswith("="):
        claims[settings.jwt_tenant] = tenant
    if scopes:
        claims[settings.jwt_scopes] = " ".join(scopes)
    if issuers := names(settings.jwt_issuer):
        claims["iss"] = issuers[0]
    if audiences := names(settings.jwt_audience):
        claims["aud"] = audiences[0]
    return claims


def _named(key: Key) -> dict[str, Any] | None:
    return None if key.id is None else {"kid": key.id}

"""Tokens: signed JSON (JWT, RFC 7519), checked as RFC 8725 asks, and what of them becomes a principal.

PyJWT checks signature and times. Around it: a token has one form and a limited size; the key decides the algorithm; nothing in a token
leads anywhere (``jku``, ``x5u``, ``jwk``), or changes how it is read (``crit``).
"""

import math
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import jwt
import msgspec

from ...core.errors import InvalidRequest
from ...core.settings import Settings
from .expiry import now
from .hosts import names
from .keyring import KeyRing
from .keys import Key
from .principal import InvalidCredential, Principal

MAX_TOKEN: Final = 8192
_FORM: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TENANT: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.:@~+=-]{1,128}")
_SUBJECT: Final = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")
_SCOPE: Final = re.compile(r"[!-~]{1,1024}")
_CONSTANT: Final = "="
_REASONS: Final[Mapping[type[Exception], str]] = {
    jwt.ExpiredSignatureError: "the token has expired",
    jwt.ImmatureSignatureError: "the token is not valid yet",
    jwt.InvalidIssuerError: "the token is another issuer's; see the setting jwt_issuer",
    jwt.InvalidAudienceError: "the token is for another audience; see the setting jwt_audience",
}
"""What is told to whoever has a token with a good signature; everybody else only hears that it has none."""


class Tokens:
    """Makes principals of tokens."""

    def __init__(self, keys: KeyRing, settings: Settings) -> None:
        """Take keys, and the names of claims.

        Raises:
            InvalidRequest: The one tenant for everybody has a name that none can have.
        """
        self._keys = keys
        self._issuers, self._audiences = names(settings.jwt_issuer), names(settings.jwt_audience)
        self._leeway, self._lifetime = settings.jwt_leeway, settings.jwt_lifetime
        self._tenant, self._subject, self._scopes = settings.jwt_tenant, settings.jwt_subject, settings.jwt_scopes
        if self._tenant.startswith(_CONSTANT) and _TENANT.fullmatch(self._tenant[1:]) is None:
            raise InvalidRequest("a tenant is 1 to 128 letters, digits or any of _.:@~+=-", field="jwt_tenant")

    async def principal(self, token: str) -> Principal:
        """Who a token is about.

        Raises:
            InvalidCredential: It is no token of this deployment, or not now.
            AuthUnavailable: There are no keys to check it with.
        """
        algorithm, key_id = _header(token)
        keys = await self._keys.known()
        claims = self._verified(token, _fitting(keys, algorithm, key_id))
        if claims is None and not _is_named(keys, key_id):
            newer = await self._keys.newer(keys)
            claims = self._verified(token, _fitting(newer, algorithm, key_id)) if newer is not keys else None
        if claims is None:
            raise _unknown()
        return self._read(claims)

    def _verified(self, token: str, keys: Sequence[Key]) -> dict[str, Any] | None:
        """The claims, if one of the keys has signed them."""
        for key in keys:
            try:
                return jwt.decode(
                    token,
                    key.value,
                    algorithms=[key.algorithm],
                    options={"require": ["exp"]},
                    leeway=self._leeway,
                    issuer=self._issuers or None,
                    audience=self._audiences or None,
                )
            except jwt.InvalidSignatureError:
                continue
            except jwt.MissingRequiredClaimError as e:
                raise InvalidCredential(f"the token has no {e.claim}") from None
            except jwt.InvalidTokenError as e:
                raise InvalidCredential(_REASONS.get(type(e), "the token cannot be read")) from None
            except Exception:
                # The library met what nobody thought of. Whatever it is, it is no token.
                raise InvalidCredential("the token cannot be read") from None
        return None

    def _read(self, claims: Mapping[str, Any]) -> Principal:
        began, ends = _time(claims, "iat"), _time(claims, "exp")
        if ends is None:
            raise InvalidCredential("the token's exp is no time")
        moment = now()
        if ends - moment > self._lifetime + self._leeway:
            raise InvalidCredential(f"the token ends later than in {self._lifetime:g} seconds; see the setting jwt_lifetime")
        tenant = self._tenant[1:] if self._tenant.startswith(_CONSTANT) else find(claims, self._tenant)
        subject, session = find(claims, self._subject), claims.get("sid")
        if not isinstance(tenant, str) or _TENANT.fullmatch(tenant) is None:
            raise InvalidCredential(f"the token's {self._tenant} is no tenant: 1 to 128 letters, digits or any of _.:@~+=-")
        if not isinstance(subject, str) or _SUBJECT.fullmatch(subject) is None:
            raise InvalidCredential(f"the token's {self._subject} is no subject: 1 to 255 printable ASCII characters")
        return Principal(
            tenant=tenant,
            subject=subject,
            scopes=self._scopes_of(claims),
            # The leeway is for coming in: what is open ends with the token, and what comes in late stays as long as it may come in.
            expires_at=ends if ends > moment else ends + self._leeway,
            issued_at=began,
            session=session if isinstance(session, str) and _SUBJECT.fullmatch(session) else None,
        )

    def _scopes_of(self, claims: Mapping[str, Any]) -> frozenset[str]:
        given = find(claims, self._scopes)
        listed: Any = given.split(" ") if isinstance(given, str) else [] if given is None else given
        if not isinstance(listed, list):
            raise InvalidCredential(f"the token's {self._scopes} is neither a list nor text")
        scopes = [scope for scope in cast(list[Any], listed) if scope != ""]
        if not all(isinstance(scope, str) and _SCOPE.fullmatch(scope) for scope in scopes):
            raise InvalidCredential(f"the token's {self._scopes} holds what is no scope: text without blanks")
        return frozenset(scopes)


def find(claims: Mapping[str, Any], path: str) -> Any:
    """A claim by its name, which may have dots in it, else by a path of names joined by dots; None when there is none."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        value = cast(Mapping[str, Any], value).get(name) if isinstance(value, dict) else None
    return value


def _header(token: str) -> tuple[Any, str | None]:
    """What a token says of how it is signed, to be believed only as far as a key agrees."""
    if len(token) > MAX_TOKEN:
        raise InvalidCredential(f"a token has at most {MAX_TOKEN} characters here")
    if _FORM.fullmatch(token) is None:
        raise InvalidCredential("this is no token: it has three parts in base64url, joined by dots")
    segment = token.partition(".")[0]
    try:
        # Not by the library, which would decode all of it: most that is no token ends here, and costs little.
        header = msgspec.json.decode(urlsafe_b64decode(segment + "=" * (-len(segment) % 4)), type=dict[str, Any])
    except (ValueError, RecursionError):
        raise _unknown() from None
    if "crit" in header or "b64" in header:
        raise InvalidCredential("the token asks for an extension that is not served here")
    key_id = header.get("kid")
    if key_id is not None and not isinstance(key_id, str):
        raise _unknown()
    return header.get("alg"), key_id


def _fitting(keys: Sequence[Key], algorithm: Any, key_id: str | None) -> Sequence[Key]:
    return [key for key in keys if key.algorithm == algorithm and (key.id is None or key_id is None or key.id == key_id)]


def _is_named(keys: Sequence[Key], key_id: str | None) -> bool:
    return key_id is not None and any(key.id == key_id for key in keys)


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = float(value)
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) else None


def _unknown() -> InvalidCredential:
    return InvalidCredential("the token is not signed with a key that is known here")

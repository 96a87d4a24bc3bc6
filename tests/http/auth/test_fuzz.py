"""Whatever a stranger sends for a token is refused in words; only what an issuer signed is let in."""

import asyncio
import json
import time
from typing import Any, Final

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reattach.core.settings import Settings
from reattach.http.auth import InvalidCredential, Principal
from reattach.http.auth.keyring import KeyRing
from reattach.http.auth.keys import BadKeys, Key, parse
from reattach.http.auth.tokens import Tokens

from ...support.issuer import SECRET, claims_of, encode, es256, forge, hs256, rs256
from ...support.scale import rounds

EXAMPLES: Final = rounds(40)
ISSUERS: Final = (rs256("r"), es256("e"), hs256())
GOOD: Final = [issuer.token(exp=int(time.time()) + 80_000, iat=None) for issuer in ISSUERS]

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["none", "HS256", "RS256", "r", "e"])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3), max_leaves=8
)
headers = st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jku", "jwk", "x5c", "zip", "enc", "cty", "exp"]), values)
claim_sets = st.dictionaries(
    st.sampled_from(["exp", "nbf", "iat", "iss", "aud", "sub", "tenant", "scope", "sid", "jti", "realm_access"]), values
)


def read(token: str, **changes: Any) -> Principal | None:
    """The token's principal; None when it is refused. Anything else than a refusal is a defect."""

    async def nothing() -> tuple[Key, ...]:
        raise OSError

    async def ask() -> Principal | None:
        keys = [key for issuer in ISSUERS[:2] for key in parse(json.dumps(issuer.jwk()).encode(), secrets=False)]
        ring = KeyRing(nothing, [*keys, *parse(SECRET.encode(), secrets=True)])
        try:
            return await Tokens(ring, Settings(jwt_lifetime=366 * 86_400, **changes)).principal(token)
        except InvalidCredential as e:
            assert SECRET not in e.detail and 0 < len(e.detail) < 300
            return None
        finally:
            await ring.close()

    return asyncio.run(ask())


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(max_size=60) | st.text("eyJ._-=Aa0 ", max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")))
@example("..")
@example("a.b.c")
@example("eyJhbGciOiJub25lIn0.e30.")
def test_no_text_is_a_token(text: str) -> None:
    """Any text, any bytes."""
    assert read(text) is None


@settings(max_examples=EXAMPLES, deadline=None)
@given(headers, st.none() | claim_sets, st.sampled_from([None, b"", ISSUERS[0].pem, ISSUERS[1].pem, b"guess"]))
def test_no_header_opens_the_door(header: dict[str, Any], claims: dict[str, Any] | None, secret: bytes | None) -> None:
    """Whatever the header says: without an issuer's key it is no token."""
    assert read(forge(header, claims, secret=secret)) is None


@settings(max_examples=EXAMPLES, deadline=None)
@given(headers)
def test_a_header_under_a_good_signature_changes_nothing(header: dict[str, Any]) -> None:
    """A token that the issuer itself signed with odd headers is read as what it is, or refused."""
    found = read(forge({**header, "alg": "HS256"}, secret=SECRET.encode()))
    assert found is None or (found.tenant, found.subject) == ("dev", "ann")


@settings(max_examples=EXAMPLES, deadline=None)
@given(claim_sets)
def test_claims_give_a_sound_principal_or_none(claims: dict[str, Any]) -> None:
    """Signed claims of any kind: what comes out has a tenant and a subject that fit into keys, logs and headers."""
    found = read(forge({"alg": "HS256"}, {**claims_of({}), **claims}, secret=SECRET.encode()))
    if found is not None:
        assert found.tenant.isascii() and found.tenant.isprintable() and 0 < len(found.tenant) <= 128 and "/" not in found.tenant
        assert found.subject.isascii() and found.subject.isprintable() and 0 < len(found.subject) <= 255
        assert all(scope.isascii() and scope.isprintable() and " " not in scope for scope in found.scopes)
        assert found.expires_at is not None and found.expires_at > 0


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(GOOD), st.integers(0, 10_000), st.characters(codec="utf-8") | st.sampled_from("=.-_ \n\x00"), st.sampled_from("xid"))
def test_one_wrong_character_is_one_too_many(token: str, at: int, character: str, how: str) -> None:
    """A character changed, inserted or left out, anywhere: what is let in is the token itself."""
    at %= len(token)
    changed = {"x": token[:at] + character + token[at + 1 :], "i": token[:at] + character + token[at:], "d": token[:at] + token[at + 1 :]}[
        how
    ]
    if changed != token:
        assert read(changed) is None
    assert read(token) is not None


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.binary(max_size=80)
    | values.map(lambda v: json.dumps(v).encode())
    | st.lists(headers).map(lambda k: json.dumps({"keys": k}).encode())
)
def test_no_document_breaks_the_reading_of_keys(raw: bytes) -> None:
    """Keys, or a sentence that does not repeat what was read."""
    try:
        found = parse(raw, secrets=True)
    except BadKeys as e:
        assert len(e.detail) < 300 and (len(raw) < 24 or encode(raw) not in e.detail)
    else:
        assert all(key.algorithm in ("HS256", "RS256", "ES256") for key in found)

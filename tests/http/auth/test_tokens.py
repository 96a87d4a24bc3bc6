"""Tokens: who is let in, as whom, and who is not."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from reattach.core.errors import InvalidRequest
from reattach.core.settings import Settings
from reattach.http.auth import InvalidCredential, Principal
from reattach.http.auth.keyring import KeyRing
from reattach.http.auth.keys import Key, parse
from reattach.http.auth.tokens import MAX_TOKEN, Tokens

from ...support.issuer import SECRET, Issuer, es256, forge, hs256, rs256

RSA, EC, PLAIN = rs256("r"), es256("e"), hs256("s")


async def nothing_newer() -> tuple[Key, ...]:
    """A source that has nothing more to say."""
    raise OSError


def trusting(*issuers: Issuer, **settings: Any) -> Tokens:
    """Tokens of these issuers, under settings."""
    keys: list[Key] = []
    for issuer in issuers:
        raw = issuer.private.encode() if issuer.algorithm == "HS256" else json.dumps(issuer.jwk()).encode()
        keys += parse(raw, secrets=True)
    return Tokens(KeyRing(nothing_newer, keys), Settings(**settings))


async def read(token: str, *issuers: Issuer, **settings: Any) -> Principal:
    """The token's principal."""
    return await trusting(*(issuers or (RSA, EC, PLAIN)), **settings).principal(token)


async def refused(token: str, why: str, *issuers: Issuer, **settings: Any) -> None:
    """It is refused, for this reason."""
    with pytest.raises(InvalidCredential, match=why) as caught:
        await read(token, *issuers, **settings)
    assert token[:20] not in caught.value.detail or not token


@pytest.mark.parametrize("issuer", [RSA, EC, PLAIN], ids=["RS256", "ES256", "HS256"])
async def test_every_algorithm(issuer: Issuer) -> None:
    """Tenant, subject, scopes and end come from the claims."""
    moment = time.time()
    found = await read(issuer.token(scope="read:dev/a  cancel", exp=moment + 60.5, iat=int(moment), sid="login-1"))
    assert (found.tenant, found.subject, found.scopes) == ("dev", "ann", {"read:dev/a", "cancel"})
    assert (found.expires_at, found.issued_at, found.session, found.run_id) == (moment + 60.5, int(moment), "login-1", None)


async def test_a_token_that_names_no_key_is_tried_with_those_of_its_algorithm() -> None:
    """And with a key without a name, whatever it names."""
    nameless = Issuer("ES256", EC.private)
    assert (await read(nameless.token(), RSA, es256("other", 1), EC)).subject == "ann"
    assert (await read(EC.token(), RSA, nameless)).subject == "ann"
    await refused(Issuer("ES256", EC.private, "r").token(), "not signed", RSA, EC)


UNSIGNED = "not signed with a key that is known here"


@pytest.mark.parametrize(
    ("header", "secret", "why"),
    [
        ({"alg": "none"}, None, UNSIGNED),
        ({"alg": "None"}, None, UNSIGNED),
        ({"alg": "NONE", "kid": "e"}, None, UNSIGNED),
        ({"alg": "none", "typ": "JWT"}, SECRET.encode(), UNSIGNED),
        ({"alg": ""}, None, UNSIGNED),
        ({}, None, UNSIGNED),
        ({"alg": None}, None, UNSIGNED),
        ({"alg": ["HS256"]}, SECRET.encode(), UNSIGNED),
        ({"alg": "hs256"}, SECRET.encode(), UNSIGNED),
        ({"alg": "HS384"}, SECRET.encode(), UNSIGNED),
        ({"alg": "HS256"}, b"", UNSIGNED),
        ({"alg": "HS256"}, None, UNSIGNED),
        # The public key as if it were a secret, in every form in which one could come by it.
        ({"alg": "HS256", "kid": "r"}, RSA.pem, UNSIGNED),
        ({"alg": "HS256"}, RSA.pem, UNSIGNED),
        ({"alg": "HS256"}, EC.pem, UNSIGNED),
        ({"alg": "HS256", "kid": "e"}, json.dumps(EC.jwk()).encode(), UNSIGNED),
        # Keys that the token brings with it, or says where to fetch.
        ({"alg": "HS256", "jwk": {"kty": "oct", "k": "YQ"}}, b"a", UNSIGNED),
        ({"alg": "HS256", "jku": "http://127.0.0.1/"}, b"a", UNSIGNED),
        ({"alg": "HS256", "kid": "/dev/null"}, b"", UNSIGNED),
        ({"alg": "HS256", "kid": 7}, b"a", UNSIGNED),
        ({"alg": "HS256", "crit": ["exp"], "exp": 1}, SECRET.encode(), "extension"),
        ({"alg": "HS256", "crit": []}, SECRET.encode(), "extension"),
        ({"alg": "HS256", "b64": False, "crit": ["b64"]}, SECRET.encode(), "extension"),
        (b"null", SECRET.encode(), UNSIGNED),
        (b"[]", SECRET.encode(), UNSIGNED),
        (b"{", SECRET.encode(), UNSIGNED),
        (b"\xff", None, UNSIGNED),
        (b"[" * 5000, SECRET.encode(), UNSIGNED),
    ],
)
async def test_the_key_decides_how_a_token_is_checked(header: Any, secret: bytes | None, why: str) -> None:
    """No token is believed what it says of itself."""
    await refused(forge(header, secret=secret), why)


async def test_a_forged_token_with_the_right_secret_would_be_good() -> None:
    """So the cases above fail for the reason they are meant to."""
    assert (await read(forge({"alg": "HS256"}, secret=SECRET.encode()))).subject == "ann"


MANGLED: list[Callable[[str], str]] = [
    lambda t: t + "=",
    lambda t: t + ".",
    lambda t: "." + t,
    lambda t: t + ".x",
    lambda t: t[:-2],
    lambda t: t.replace(".", "..", 1),
    lambda t: f" {t}",
    lambda t: f"{t}\n",
    lambda t: t.rpartition(".")[0],
    lambda t: t.rpartition(".")[0] + ".",
    lambda t: "",
    lambda t: t.replace(".", ".\x00", 1),
    lambda t: t + "é",
    lambda t: t.swapcase(),
    lambda t: t[::-1],
    lambda t: t + "A" * MAX_TOKEN,
    lambda t: "\ud800" + t,
    lambda t: "..",
    lambda t: t.replace("_", "/").replace("-", "+") + "/",
]


@pytest.mark.parametrize("mangle", MANGLED)
async def test_a_token_has_one_form(mangle: Callable[[str], str]) -> None:
    """No padding, no other alphabet, no fourth part, no blanks, and a limited size."""
    await refused(mangle(PLAIN.token()), "token")


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": None}, "no exp"),
        ({"exp": 1}, "has expired"),
        ({"exp": "tomorrow"}, "cannot be read"),
        ({"exp": [1]}, "cannot be read"),
        ({"exp": "99999999999"}, "exp is no time"),
        ({"exp": True}, "has expired"),
        ({"exp": 1e308}, "later than"),
        ({"exp": 10**400}, "exp is no time"),
        ({"exp": float("inf")}, "cannot be read"),
        ({"exp": float("nan")}, "cannot be read"),
        ({"exp": time.time() + 90_000}, "later than in 86400"),
        ({"nbf": time.time() + 300}, "not valid yet"),
        ({"nbf": "x"}, "cannot be read"),
        ({"iat": time.time() + 300}, "not valid yet"),
        ({"aud": "other"}, "another audience"),
        ({"aud": ["a", "b"]}, "another audience"),
        ({"tenant": None}, "is no tenant"),
        ({"tenant": ""}, "is no tenant"),
        ({"tenant": 7}, "is no tenant"),
        ({"tenant": "a/b"}, "is no tenant"),
        ({"tenant": ".."}, "is no tenant"),
        ({"tenant": "."}, "is no tenant"),
        ({"tenant": "a\n"}, "is no tenant"),
        ({"tenant": "a b"}, "is no tenant"),
        ({"tenant": "x" * 129}, "is no tenant"),
        ({"tenant": "{a}"}, "is no tenant"),
        ({"tenant": ["dev"]}, "is no tenant"),
        ({"tenant": "té"}, "is no tenant"),
        ({"sub": None}, "is no subject"),
        ({"sub": ""}, "is no subject"),
        ({"sub": "a\x00"}, "is no subject"),
        ({"sub": "a\n"}, "is no subject"),
        ({"sub": " ann"}, "is no subject"),
        ({"sub": "x" * 256}, "is no subject"),
        ({"sub": "\u2028"}, "is no subject"),
        ({"sub": "\ud800"}, "is no subject"),
        ({"scope": 7}, "neither a list nor text"),
        ({"scope": {"a": 1}}, "neither a list nor text"),
        ({"scope": [7]}, "no scope"),
        ({"scope": ["a b"]}, "no scope"),
        ({"scope": "a\tb"}, "no scope"),
        ({"scope": "read\x00"}, "no scope"),
        ({"scope": ["x" * 1025]}, "no scope"),
    ],
)
async def test_claims_that_do_not_do(claims: dict[str, Any], why: str) -> None:
    """Each is said in words, to whoever has a token with a good signature."""
    await refused(PLAIN.token(**claims), why)


@pytest.mark.parametrize(
    "claims",
    [
        {"sub": "auth0|5f7c8ec7c33c6c004bbafe82"},
        {"sub": "system:serviceaccount:ns:name"},
        {"sub": "x" * 255},
        {"sub": "Ann Smith"},
        {"tenant": "x" * 128},
        {"tenant": "acme.example"},
        {"tenant": "a@b"},
        {"sid": 7},
        {"sid": "\n"},
        {"iat": None},
        {"iat": "7"},
        {"nbf": time.time() - 5},
        {"aud": None},
        {"aud": []},
        {"jti": "x"},
        {"scope": None},
        {"scope": []},
        {"iss": "https://issuer.example"},
    ],
)
async def test_claims_that_do(claims: dict[str, Any]) -> None:
    """What identity providers really write; what is not needed may be missing or odd."""
    found = await read(PLAIN.token(**claims))
    assert (found.tenant, found.subject) == (claims.get("tenant", "dev"), claims.get("sub", "ann"))
    assert found.session is None


async def test_clocks_may_differ_a_little() -> None:
    """By the leeway, in both directions, and no further. What comes in after its end may stay as long as it may come in."""
    moment = int(time.time())
    late = await read(PLAIN.token(exp=moment - 20), jwt_leeway=30)
    assert late.expires_at == moment + 10
    await read(PLAIN.token(nbf=moment + 20, iat=moment + 20), jwt_leeway=30)
    for claims in ({"exp": moment - 40}, {"nbf": moment + 40}, {"iat": moment + 40}):
        await refused(PLAIN.token(**claims), "expired|not valid yet", jwt_leeway=30)
    await refused(PLAIN.token(exp=moment - 1), "expired", jwt_leeway=0)


async def test_issuer_and_audience() -> None:
    """Exact, one of several, and needed once they are asked for."""
    asked: dict[str, Any] = {"jwt_issuer": "https://a.example/, https://b.example", "jwt_audience": "reattach, other"}
    good = {"iss": "https://b.example", "aud": ["x", "reattach"]}
    assert (await read(PLAIN.token(**good), **asked)).subject == "ann"
    for claims, why in (
        ({"iss": "https://a.example"}, "another issuer"),
        ({"iss": None}, "no iss"),
        ({"iss": "https://b.example/"}, "another issuer"),
        ({"aud": "reatta"}, "another audience"),
        ({"aud": None}, "no aud"),
        ({"aud": 7}, "another audience"),
        ({"aud": [7]}, "another audience"),
    ):
        await refused(PLAIN.token(**{**good, **claims}), why, **asked)


async def test_claims_have_the_names_that_the_settings_say() -> None:
    """A name with dots in it, or a path of names; scopes as text or list; one tenant for everybody."""
    claims = {
        "sub": "id-7",
        "email": "ann@acme.example",
        "https://acme.example/org": "acme",
        "realm_access": {"roles": ["read", "cancel:acme/x"]},
        "tenant": None,
    }
    named = {"jwt_tenant": "https://acme.example/org", "jwt_subject": "email", "jwt_scopes": "realm_access.roles"}
    found = await read(PLAIN.token(**claims), **named)
    assert (found.tenant, found.subject, found.scopes) == ("acme", "ann@acme.example", {"read", "cancel:acme/x"})
    assert (await read(PLAIN.token(**claims), **{**named, "jwt_tenant": "=one"})).tenant == "one"
    assert (await read(PLAIN.token(**claims), **{**named, "jwt_scopes": "realm_access.groups.x"})).scopes == frozenset()
    assert (await read(PLAIN.token(**claims), **{**named, "jwt_scopes": "email.x"})).scopes == frozenset()
    await refused(PLAIN.token(**claims), "the token's realm_access is no tenant", **{**named, "jwt_tenant": "realm_access"})


def test_one_tenant_for_everybody_has_a_name_that_a_tenant_can_have() -> None:
    """Refused at start."""
    for name in ("=", "=a/b", "=.."):
        with pytest.raises(InvalidRequest, match="a tenant is"):
            Tokens(None, Settings(jwt_tenant=name))  # pyright: ignore[reportArgumentType]

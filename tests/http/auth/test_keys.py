"""Keys: what is taken for one, which algorithm it gets, and what is refused without a word of it being repeated."""

import datetime
import json
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import NameOID

from reattach.http.auth.keys import MAX_KEYS, BadKeys, parse

from ...support.issuer import SECRET, ec_key, encode, es256, rs256, rsa_key


def jwks(*members: Any) -> bytes:
    """A JWKS document."""
    return json.dumps({"keys": list(members)}).encode()


def certificate() -> bytes:
    """One that the RSA key has signed for itself."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    made = x509.CertificateBuilder(name, name, rsa_key().public_key(), 1, start, start + datetime.timedelta(days=3650))
    return made.sign(rsa_key(), hashes.SHA256()).public_bytes(Encoding.PEM)


def oct_key(**changes: Any) -> dict[str, Any]:
    """A secret as a JWK."""
    return {"kty": "oct", "k": encode(SECRET.encode()), "kid": "s", **changes}


@pytest.mark.parametrize(
    ("raw", "algorithms"),
    [
        (SECRET.encode(), ["HS256"]),
        (b"  " + SECRET.encode() + b"\r\n", ["HS256"]),
        (rs256().pem, ["RS256"]),
        (es256().pem, ["ES256"]),
        (b"a comment\n" + es256().pem, ["ES256"]),
        (certificate(), ["RS256"]),
        (json.dumps(es256("a").jwk()).encode(), ["ES256"]),
        (json.dumps(rs256("a").jwk(alg=None, use=None)).encode(), ["RS256"]),
        (jwks(rs256("a").jwk(), es256("b").jwk(), oct_key()), ["RS256", "ES256", "HS256"]),
        # Keys for other uses and of kinds to come are passed over.
        (jwks(rs256("a").jwk(), {"kty": "OKP", "crv": "Ed25519", "x": "AA"}, es256("b").jwk(use="enc"), {"kty": "AKP"}, {}), ["RS256"]),
        (jwks(rs256("a").jwk(alg="RS512"), rs256("b").jwk(alg="RSA-OAEP"), es256("c").jwk(key_ops=["verify"])), ["ES256"]),
    ],
)  # fmt: skip
def test_a_key_has_the_algorithm_of_its_type(raw: bytes, algorithms: list[str]) -> None:
    """Whatever form it comes in."""
    assert [key.algorithm for key in parse(raw, secrets=True)] == algorithms


def private_pem() -> bytes:
    """What does not belong here."""
    return rsa_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "at least 32 bytes"),
        (SECRET[:-1].encode(), "at least 32 bytes"),
        (private_pem(), "private key"),
        (json.dumps(es256("a").jwk(d="AAAA")).encode(), "private key"),
        (b"-----BEGIN PUBLIC KEY-----\nc2VjcmV0\n-----END PUBLIC KEY-----\n", "cannot be read"),
        (ec_key(curve="P-384").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), "RSA or a P-256"),
        (rsa_key(bits=1024).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), "2048"),
        (rsa_key().public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH), "neither"),
        (rsa_key().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo), "neither"),
        (b"\xef\xbb\xbf" + jwks(rs256("a").jwk()), "neither"),
        (b"[" + json.dumps(rs256("a").jwk()).encode() + b"]", "neither"),
        (b"<html>" + b"x" * 64, "neither"),
        (b"root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/bin/false", "one line"),
        (bytes(range(128, 192)), "one line"),
        (b'{"keys": 7}', "neither a JWKS nor a JWK"),
        (b'{"keys": [7]}', "neither a JWKS nor a JWK"),
        (b'{"keys": []}', "empty"),
        (b'{"keys": [' + b"[" * 5000, "neither a JWKS nor a JWK"),
        (jwks(*[es256("a").jwk()] * (MAX_KEYS + 1)), f"at most {MAX_KEYS}"),
        (jwks(rs256("a").jwk(n=7)), "cannot be read"),
        (jwks(rs256("a").jwk(kid=7)), "a kid is text"),
        (jwks(rs256("a").jwk(kty=["RSA"])), "a JWK is for"),
        (jwks(es256("a").jwk(crv="P-384")), "none in the JWKS"),
        (jwks(oct_key(k=encode(b"short"))), "at least 32 bytes"),
    ],
)  # fmt: skip
def test_what_is_no_key_is_refused(raw: bytes, why: str) -> None:
    """In words, with no part of it: it may be a secret."""
    with pytest.raises(BadKeys, match=why) as caught:
        parse(raw, secrets=True)
    assert caught.value.extra == {"field": "jwt_keys"}
    assert len(caught.value.detail) < 200
    for part in (raw.decode("latin-1")[i : i + 16] for i in range(0, min(len(raw), 4000), 16)):
        assert len(part) < 16 or part not in caught.value.detail


@pytest.mark.parametrize("raw", [SECRET.encode(), jwks(oct_key())])
def test_a_secret_is_never_taken_from_an_address(raw: bytes) -> None:
    """Everybody could read it there."""
    with pytest.raises(BadKeys):
        parse(raw, secrets=False)


def test_a_key_does_not_show_itself() -> None:
    """In a log or traceback."""
    assert [repr(key) for key in parse(SECRET.encode(), secrets=True)] == ["Key(HS256, None)"]

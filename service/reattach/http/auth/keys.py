"""Keys that tokens are checked with. A key has one algorithm, by its type: what a token says of itself never decides how it is checked.

=====================  =========  ========================================================================================
key                    algorithm  forms
=====================  =========  ========================================================================================
a secret               HS256      one line, at least 32 bytes (RFC 7518 section 3.2); JWK ``oct``. Never from an address
RSA, 2048 bits and up  RS256      PEM public key or certificate; JWK ``RSA``
P-256                  ES256      PEM public key or certificate; JWK ``EC``
=====================  =========  ========================================================================================
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import jwt
import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from ...core.errors import InvalidRequest

Algorithm = Literal["HS256", "RS256", "ES256"]

MIN_SECRET: Final = 32
MAX_KEYS: Final = 32
"""More keys than this in one set are a mistake: a token without a key id is tried with each."""
_RSA_BITS: Final = range(2048, 8193)
_BY_TYPE: Final[Mapping[str, Algorithm]] = {"oct": "HS256", "RSA": "RS256", "EC": "ES256"}
_LINE: Final = re.compile(rb"[ -~]*")
_NO_SECRETS: Final = (b"-----BEGIN", b"---- BEGIN", b"ssh-", b"ecdsa-", b"{", b"[", b"<", b"\xef\xbb\xbf")


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key.

    Attributes:
        algorithm: The only one that it is used with.
        value: For the library.
        id: Which tokens name it (``kid``); None: tokens need not name it.
    """

    algorithm: Algorithm
    value: Any
    id: str | None = None

    def __repr__(self) -> str:
        """Without the key."""
        return f"Key({self.algorithm}, {self.id})"


class BadKeys(InvalidRequest):
    """What was given are not keys that tokens can be checked with. Its text never holds any of it."""

    def __init__(self, why: str) -> None:
        """Say why."""
        super().__init__(f"no keys for tokens: {why}", field="jwt_keys")


def parse(raw: bytes, *, secrets: bool) -> tuple[Key, ...]:
    """The keys in a document, whatever its form.

    Args:
        raw: A JWKS, a JWK, a PEM or a secret.
        secrets: Whether a secret is allowed; not where everybody can read the document.

    Raises:
        BadKeys: It holds none that can be used.
    """
    text = raw.strip()
    if text.startswith(b"{"):
        return _from_json(text, secrets=secrets)
    if b"-----BEGIN" in text:
        return (_from_pem(text),)
    if not secrets or text.startswith(_NO_SECRETS) or _LINE.fullmatch(text) is None:
        line = ", nor a secret in one line of ASCII" if secrets else ""
        raise BadKeys(f"it is neither a JWKS nor a JWK, nor a public key or certificate as PEM{line}")
    return (_secret(text),)


def _secret(value: bytes, key_id: str | None = None) -> Key:
    if len(value) < MIN_SECRET:
        raise BadKeys(f"a secret has at least {MIN_SECRET} bytes; make one with: openssl rand -hex 32")
    return Key(algorithm="HS256", value=value, id=key_id)


def _public(value: object, key_id: str | None = None) -> Key:
    if isinstance(value, RSAPublicKey):
        if value.key_size not in _RSA_BITS:
            raise BadKeys(f"an RSA key has {_RSA_BITS[0]} to {_RSA_BITS[-1]} bits")
        return Key(algorithm="RS256", value=value, id=key_id)
    if isinstance(value, EllipticCurvePublicKey) and isinstance(value.curve, SECP256R1):
        return Key(algorithm="ES256", value=value, id=key_id)
    raise BadKeys("a public key is an RSA or a P-256 key")


def _from_pem(text: bytes) -> Key:
    if b"PRIVATE KEY" in text:
        raise BadKeys("this is a private key; give the public one, whoever checks tokens must not be able to make them")
    try:
        certificate = b"-----BEGIN CERTIFICATE" in text
        value = x509.load_pem_x509_certificate(text).public_key() if certificate else load_pem_public_key(text)
    except Exception:
        # Whatever the library says, it may quote the key.
        raise BadKeys("the PEM cannot be read as a public key or certificate") from None
    return _public(value)


def _from_json(text: bytes, *, secrets: bool) -> tuple[Key, ...]:
    try:
        document = msgspec.json.decode(text, type=dict[str, Any])
        listed: Any = document.get("keys", [document])
        members = msgspec.convert(listed, list[dict[str, Any]])
    except (msgspec.MsgspecError, RecursionError):
        raise BadKeys("the JSON is neither a JWKS nor a JWK") from None
    if len(members) > MAX_KEYS:
        raise BadKeys(f"a JWKS has at most {MAX_KEYS} keys here")
    keys: list[Key] = []
    why = "the JWKS is empty"
    for member in members:
        # A set may hold keys for other uses, or of kinds to come: they are passed over (RFC 7517 section 5).
        try:
            keys.append(_from_jwk(member, secrets=secrets))
        except BadKeys as e:
            why = f"none in the JWKS can be used; of the last one: {e.detail.partition(': ')[2]}"
    if not keys:
        raise BadKeys(why)
    return tuple(keys)


def _from_jwk(member: Mapping[str, Any], *, secrets: bool) -> Key:
    kind, key_id = member.get("kty"), member.get("kid")
    algorithm = _BY_TYPE.get(kind) if isinstance(kind, str) else None
    operations: Any = member.get("key_ops", ["verify"])
    if algorithm is None or member.get("alg", algorithm) != algorithm:
        raise BadKeys(f"a JWK is for {', '.join(_BY_TYPE.values())}")
    if member.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        raise BadKeys("the JWK is not for checking signatures")
    if not (key_id is None or (isinstance(key_id, str) and key_id)):
        raise BadKeys("a kid is text")
    if algorithm == "HS256" and not secrets:
        raise BadKeys("a secret does not belong to where everybody can read it")
    if "d" in member:
        raise BadKeys("this is a private key; give the public one, whoever checks tokens must not be able to make them")
    try:
        value: object = jwt.PyJWK(cast(Any, dict(member)), algorithm).key
    except Exception:
        raise BadKeys("a JWK cannot be read") from None
    return _secret(value, key_id) if isinstance(value, bytes) else _public(value, key_id)

"""Who makes tokens: keys of every kind, tokens good and forged, and a real server of keys."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

SECRET: Final = "0123456789abcdef0123456789abcdef"


class Issuer:
    """One signing key.

    Attributes:
        algorithm: HS256, RS256 or ES256.
        id: Its ``kid``; None: tokens name none.
    """

    def __init__(self, algorithm: str, private: Any, key_id: str | None = None) -> None:
        self.algorithm, self.private, self.id = algorithm, private, key_id

    def token(self, headers: Mapping[str, Any] | None = None, /, **claims: Any) -> str:
        """A token that is good unless the claims say otherwise; None takes a claim away."""
        named = {} if self.id is None else {"kid": self.id}
        return jwt.encode(claims_of(claims), self.private, self.algorithm, headers={**named, **(headers or {})})

    @property
    def pem(self) -> bytes:
        """The public key."""
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def jwk(self, **changes: Any) -> dict[str, Any]:
        """The public key as a JWK; None takes a member away."""
        public = self.private.public_key()
        made: Any = RSAAlgorithm.to_jwk(public, as_dict=True) if self.algorithm == "RS256" else ECAlgorithm.to_jwk(public, as_dict=True)
        members = {**made, "use": "sig", "alg": self.algorithm, "kid": self.id, **changes}
        members.pop("key_ops", None) if "key_ops" not in changes else None
        return {name: value for name, value in members.items() if value is not None}


@cache
def rsa_key(number: int = 0, bits: int = 2048) -> Any:
    """A private RSA key; each number another one."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


@cache
def ec_key(number: int = 0, curve: str = "P-256") -> Any:
    """A private EC key."""
    return ec.generate_private_key(ec.SECP256R1() if curve == "P-256" else ec.SECP384R1())


def rs256(key_id: str | None = None, number: int = 0) -> Issuer:
    """Signs with RSA."""
    return Issuer("RS256", rsa_key(number), key_id)


def es256(key_id: str | None = None, number: int = 0) -> Issuer:
    """Signs with P-256."""
    return Issuer("ES256", ec_key(number), key_id)


def hs256(key_id: str | None = None, secret: str = SECRET) -> Issuer:
    """Signs with a secret."""
    return Issuer("HS256", secret, key_id)


def claims_of(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The claims of a good token, with changes; None takes one away."""
    moment = int(time.time())
    claims = {"sub": "ann", "tenant": "dev", "iat": moment, "exp": moment + 60, **changes}
    return {name: value for name, value in claims.items() if value is not None}


def encode(raw: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def forge(header: Any, claims: Any = None, *, secret: bytes | None = None) -> str:
    """A token with any header; its signature is that of HMAC under `secret`, or empty bytes in base64url."""
    parts = [
        value if isinstance(value, bytes) else json.dumps(value).encode() for value in (header, claims_of({}) if claims is None else claims)
    ]
    signed = ".".join(map(encode, parts))
    signature = b"\x00" if secret is None else hmac.digest(secret, signed.encode(), hashlib.sha256)
    return f"{signed}.{encode(signature)}"


class KeyServer:
    """A JWKS address on this machine.

    Attributes:
        keys: The JWKs that it answers with.
        status: The status that it answers with.
        asked: How often it was asked.
        body: Answered in place of the keys.
    """

    def __init__(self, *issuers: Issuer) -> None:
        self.keys: list[dict[str, Any]] = [issuer.jwk() for issuer in issuers]
        self.status, self.asked, self.body = 200, 0, b""
        self.open = asyncio.Event()
        self.open.set()
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}/jwks"

    async def start(self) -> "KeyServer":
        """Answer, on the port it had before."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        """Be away."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.asked += 1
            await self.open.wait()
            body = self.body or json.dumps({"keys": self.keys}).encode()
            writer.write(b"HTTP/1.1 %d X\r\nlocation: /other\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % (self.status, len(body)))
            writer.write(body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

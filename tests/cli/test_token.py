"""The commands with authentication: what stops a start, who is let in, and that no secret is shown to anybody."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import jwt
import pytest

from reattach.core.settings import Settings

from ..support.issuer import SECRET, es256
from ..support.processes import free_port
from .shell import Service, reattach


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file with a secret."""
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    return path


@pytest.fixture
def serve(settings: Settings, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Start ``reattach serve`` and wait until it says where and for whom."""
    started: list[Service] = []

    def one(*arguments: str, **env: str) -> Service:
        given = {"REATTACH_REDIS": settings.redis or "", "REATTACH_PREFIX": settings.prefix, "REATTACH_SHARDS": str(settings.shards), **env}
        started.append(Service(tmp_path, "serve", "--port", "0", *arguments, env=given))
        started[-1].start()
        started[-1].wait_for_output("\n  auth ")
        return started[-1]

    yield one
    for service in started:
        service.close()
        assert "Traceback" not in service.output(), service.output()[-6000:]


def get(service: Service, path: str, token: str = "") -> httpx.Response:
    """One request."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx.get(f"{service.url}{path}", headers=headers, trust_env=False)


def test_a_token_from_the_command_is_taken_by_the_service(serve: Callable[..., Service], secret: Path) -> None:
    """With the same settings, whatever the claims are called; it says who may, and shows its secret to no one."""
    named = {"REATTACH_JWT_ISSUER": "https://me.example", "REATTACH_JWT_AUDIENCE": "reattach", "REATTACH_JWT_SCOPES": "access.scopes"}
    service = serve("--jwt-keys", str(secret), **named)
    assert f"tokens, checked with {secret}" in service.output()
    made = reattach("token", "ann", "--tenant", "acme", "--scope", "read", "--scope", "cancel:acme/x", "--jwt-keys", str(secret), env=named)
    assert made.returncode == 0, made.stderr
    assert made.stdout.count("\n") == 1
    assert get(service, "/agent-runs", made.stdout.strip()).status_code == 200
    assert get(service, "/agent-runs").status_code == 401
    claims = jwt.decode(made.stdout.strip(), SECRET, algorithms=["HS256"], audience="reattach")
    assert (claims["tenant"], claims["sub"], claims["access.scopes"]) == ("acme", "ann", "read cancel:acme/x")
    shown = subprocess.run(
        ["ps", "-p", str(service.process.pid), "-o", "args="], capture_output=True, text=True, timeout=10, check=True
    ).stdout
    assert "serve" in shown
    assert SECRET not in shown + service.output() and made.stdout.strip() not in service.output()


def test_a_secret_may_come_in_a_variable(serve: Callable[..., Service]) -> None:
    """Its name is said, not its value."""
    env = {"REATTACH_JWT_KEYS": "env:SIGNING", "SIGNING": SECRET}
    service = serve(**env)
    assert "checked with env:SIGNING" in service.output() and SECRET not in service.output()
    assert get(service, "/agent-runs", reattach("token", "ann", env=env).stdout.strip()).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--host", "0.0.0.0"), "without authentication the API serves this machine only: listen on 127.0.0.1 instead of 0.0.0.0"),
        (("--cookie", "login"), "a cookie carries a token, and without --jwt-keys there are none"),
        (("--cookie", "a b"), "Invalid value for '--cookie'"),
        (("--jwt-keys", "/no/such/file"), "no keys for tokens: the file cannot be read (No such file or directory)"),
        (("--jwt-keys", "env:NOT_SET_ANYWHERE"), "the variable NOT_SET_ANYWHERE is not set"),
        (("--jwt-keys", "http://issuer.example/jwks"), "an address begins with https://"),
        (("--jwt-keys", SECRET), "give an https:// URL, env:NAME or a file"),
        (("--jwt-keys", __file__), "no keys for tokens"),
        (("--jwt-keys", "env:SIGNING", "--jwt-tenant", "=a/b"), "a tenant is 1 to 128 letters"),
        (("--jwt-keys", "env:SIGNING", "--jwt-tenant", ""), "Invalid value for '--jwt-tenant'"),
        (("--jwt-leeway", "900"), "Invalid value for '--jwt-leeway'"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_stops_the_start(settings: Settings, arguments: tuple[str, ...], sentence: str) -> None:
    """In one sentence, without the value where that may be a secret."""
    where = ("--redis", settings.redis or "", "--prefix", settings.prefix, "--shards", str(settings.shards), "--port", str(free_port()))
    done = reattach("serve", *where, *arguments, env={"SIGNING": SECRET})
    assert done.returncode in (2, 4) and sentence in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and SECRET not in done.stderr


def test_what_no_service_would_take_is_not_handed_out(secret: Path, tmp_path: Path) -> None:
    """No key, a public key, a name or lifetime that is refused."""
    (tmp_path / "public").write_bytes(es256().pem)
    for arguments, sentence in (
        (("ann",), "give --jwt-keys"),
        (("ann", "--jwt-keys", "https://issuer.example/jwks"), "give --jwt-keys"),
        (("ann", "--jwt-keys", str(tmp_path / "public")), "these are public keys"),
        (("a\tb", "--jwt-keys", str(secret)), "is no subject"),
        (("ann", "--tenant", "a/b", "--jwt-keys", str(secret)), "is no tenant"),
        (("ann", "--lifetime", "90000", "--jwt-keys", str(secret)), "ends later than in 86400 seconds"),
        (("ann", "--scope", "a b\x7f", "--jwt-keys", str(secret)), "is no scope"),
    ):
        done = reattach("token", *arguments)
        assert done.returncode == 4 and done.stdout == "" and sentence in done.stderr, done.stderr


def test_dev_with_tokens(tmp_path: Path, secret: Path) -> None:
    """One setting makes it the real thing; the command it proposes has the token that it needs."""
    service = Service(tmp_path, "dev", "--port", "0", "--data", str(tmp_path / "data"), "--jwt-keys", str(secret))
    service.start()
    try:
        service.wait_for_output("reattach tail RUN")
        assert f'-H "Authorization: Bearer $(reattach token me --jwt-keys {secret})"' in service.output()
        token = reattach("token", "me", "--jwt-keys", str(secret)).stdout.strip()
        body = {"agent": "support", "input": {"ticket": 981}}
        for headers, status in (({}, 401), ({"authorization": f"Bearer {token}"}, 201)):
            assert httpx.post(f"{service.url}/agent-runs", json=body, headers=headers, trust_env=False).status_code == status
    finally:
        service.close()
    assert "Traceback" not in service.output()

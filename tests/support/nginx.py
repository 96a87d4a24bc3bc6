"""nginx in front of the API: a process of the test's own, with everything it writes in one folder, never as root."""

import os
import shutil
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from .processes import ROOT, Child, free_port
from .waiting import wait_until_sync

SHIPPED = ROOT / "deploy" / "nginx.conf"
_NOBODY = 65534
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")

DEFAULTS = """
error_log {folder}/error.log info;
pid {folder}/nginx.pid;
events {{ }}
http {{
    access_log {folder}/access.log;
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://127.0.0.1:{api}; }}
    }}
}}
"""
"""What a person writes who has heard nothing of event streams; HTTP/1.0 to the API, and buffers."""


class Nginx(Child):
    """One nginx.

    Attributes:
        folder: Its configuration, logs and temporary files.
        base_url: Where it listens.
    """

    def __init__(self, folder: Path, port: int, base_url: str) -> None:
        self.folder, self.port, self.base_url = folder, port, base_url
        # One process: workers would outlive a master that is killed.
        directives = "daemon off; master_process off;"
        command = ["nginx", "-p", str(folder), "-e", str(folder / "early.log"), "-c", str(folder / "nginx.conf"), "-g", directives]
        if os.geteuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)
            command = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--pdeathsig", "KILL", *command]
        super().__init__(f"nginx on {port}", command, log=folder.with_suffix(".log"))

    @property
    def certificate(self) -> ssl.SSLContext:
        """What its clients trust."""
        return ssl.create_default_context(cafile=str(self.folder / "cert.pem"))

    def logged(self, name: str) -> str:
        """One of its logs: ``access`` or ``error``."""
        file = self.folder / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def start(self) -> None:
        """Start it and wait until it takes requests.

        Raises:
            AssertionError: It ended, e.g. because its configuration is wrong.
        """
        super().start()

        def serves() -> bool:
            assert self.alive, f"nginx ended:\n{self.output()}{self.logged('early')}"
            # No request: the API behind it may live on the loop that waits here.
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=2):
                return True
            return False

        wait_until_sync(serves, "nginx to answer")

    def close_process(self) -> None:
        """End it, and keep what it wrote."""
        super().close()

    def close(self) -> None:
        """End it; its folder goes too."""
        super().close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.log.unlink(missing_ok=True)


def with_defaults(api_port: int) -> Nginx:
    """One that just passes requests on."""
    port, folder = free_port(), _folder()
    (folder / "nginx.conf").write_text(_private(DEFAULTS.format(folder=folder, port=port, api=api_port), folder))
    return Nginx(folder, port, f"http://127.0.0.1:{port}")


def as_shipped(*api_ports: int) -> Nginx:
    """One with ``deploy/nginx.conf``, where nothing but addresses and paths was changed."""
    port, folder = free_port(), _folder()
    _make_certificate(folder)
    servers = " ".join(f"server 127.0.0.1:{api};" for api in api_ports)
    text = SHIPPED.read_text("utf-8")
    for shipped, mine in (
        ("listen 443 ssl http2;", f"listen 127.0.0.1:{port} ssl http2;"),
        ("listen 80;", f"listen unix:{folder}/redirect.sock;"),
        ("server 127.0.0.1:8080;", servers),
        ("/etc/nginx/tls/", f"{folder}/"),
        ("/var/log/nginx/", f"{folder}/"),
        ("pid /run/nginx.pid;", f"pid {folder}/nginx.pid;"),
        ("worker_rlimit_nofile 65536;", ""),
        ("worker_connections 30000;", "worker_connections 1000;"),
    ):
        assert shipped in text, f"deploy/nginx.conf no longer says {shipped}"
        text = text.replace(shipped, mine)
    (folder / "nginx.conf").write_text(_private(text, folder))
    return Nginx(folder, port, f"https://127.0.0.1:{port}")


@contextmanager
def nginxes() -> Generator[Callable[[Nginx], Nginx]]:
    """A function that starts them; all end with the block. Skips the test where nginx is not installed."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed: apt-get install nginx")
    started: list[Nginx] = []

    def start(nginx: Nginx) -> Nginx:
        started.append(nginx)
        nginx.start()
        return nginx

    try:
        yield start
    finally:
        for nginx in started:
            nginx.close()


def _folder() -> Path:
    # Not pytest's: nobody may look into that.
    return Path(tempfile.mkdtemp(prefix="reattach-nginx-"))


def _private(text: str, folder: Path) -> str:
    paths = " ".join(f"{name}_temp_path {folder}/{name};" for name in _TEMPORARY)
    return text.replace("http {", f"http {{\n    {paths}", 1)


def _make_certificate(folder: Path) -> None:
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-x509"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run(["openssl", "req", *kind, *files, *names], check=True, capture_output=True, timeout=20)
    os.chmod(folder / "key.pem", 0o644)

"""The least that this machine can do, and what a user would write by hand."""

import sys
from collections.abc import Sequence

from .engine import build
from .stage import Stage, free_port
from .target import Target, lacks_module

XADDS = "for i=1,#ARGV do redis.call('XADD',KEYS[1],'*','t','message.delta','d',ARGV[i]) end return 1"


def uvicorn(app: str, port: int, *more: str) -> Sequence[str]:
    """A command."""
    options = ["--host", "127.0.0.1", "--port", str(port), "--loop", "uvloop", "--http", "httptools", "--log-level", "warning"]
    return [
        sys.executable,
        "-m",
        "uvicorn",
        app,
        *options,
        "--no-access-log",
        "--backlog",
        "4096",
        "--timeout-graceful-shutdown",
        "1",
        *more,
    ]


class CFloor(Target):
    """One thread of C that writes frames it keeps in memory."""

    name = "c-floor"

    def start(self, stage: Stage) -> None:
        self.port = free_port()
        stage.spawn("server", [str(build("floor")), str(self.port)])
        stage.wait(self.port)


class Bare(Target):
    """Bare uvicorn: frames made once, written straight to its transports from one loop."""

    name = "bare-uvicorn"

    def start(self, stage: Stage) -> None:
        self.port = free_port()
        stage.spawn("server", uvicorn("tests.bench.bare:app", self.port), {"BENCH_DELIVER": "transport"})
        stage.wait(self.port)


class BareSend(Bare):
    """The same under uvicorn, through ASGI's send."""

    name = "asgi-uvicorn"

    def start(self, stage: Stage) -> None:
        self.port = free_port()
        stage.spawn("server", uvicorn("tests.bench.bare:app", self.port), {"BENCH_DELIVER": "send"})
        stage.wait(self.port)


class Granian(Target):
    """The same under Granian, through ASGI's send."""

    name = "asgi-granian"

    def missing(self) -> str | None:
        return "pip install granian" if lacks_module("granian") else None

    def start(self, stage: Stage) -> None:
        self.port = free_port()
        where = ["--interface", "asgi", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1", "--loop", "uvloop"]
        how = ["--runtime-mode", "st", "--http", "1", "--backlog", "4096", "--no-access-log", "--log-level", "warning"]
        stage.spawn("server", [sys.executable, "-m", "granian", *where, *how, "tests.bench.bare:app"], {"BENCH_DELIVER": "send"})
        stage.wait(self.port)


class Handwritten(Target):
    """Starlette, sse-starlette, and one XREAD BLOCK per connection."""

    name, pub_kind, pub_depth = "hand-written", "resp", 64

    def missing(self) -> str | None:
        return "pip install starlette sse-starlette" if lacks_module("starlette", "sse_starlette") else None

    def start(self, stage: Stage) -> None:
        self.pub_port, self.port = stage.redis(), free_port()
        env = {"REDIS_PORT": str(self.pub_port), "KEEPALIVE_S": str(self.params.keepalive)}
        stage.spawn("server", uvicorn("tests.bench.handwritten:app", self.port), env)
        stage.wait(self.port)

    def event(self, name: str) -> str:
        batch, key = self.params.batch, f"run:{name}"
        command = f"*{4 + batch}\r\n$4\r\nEVAL\r\n${len(XADDS)}\r\n{XADDS}\r\n$1\r\n1\r\n${len(key)}\r\n{key}\r\n"
        if batch == 1:
            command = f"*7\r\n$4\r\nXADD\r\n${len(key)}\r\n{key}\r\n$1\r\n*\r\n$1\r\nt\r\n$13\r\nmessage.delta\r\n$1\r\nd\r\n"
        return command + f"${self.params.size}\r\n{{payload}}\r\n" * batch

"""What a service must tell to be measured: how it starts, how a stream is made, published to, subscribed to and resumed."""

import functools
import http.client
import importlib.util
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass

from .stage import Stage


@dataclass(frozen=True, kw_only=True)
class Params:
    """One workload. `rate` is events per second and stream; 0: as fast as it goes, at most `window` events ahead of the slowest."""

    subs: int = 1
    streams: int = 1
    n: int = 60
    rate: float = 0
    window: int = 0
    size: int = 200
    batch: int = 1
    hold: float = 0
    cut_at: float = 0
    gap: float = 0
    by_server: bool = False
    tick: int = 0
    depth: int = 0
    keepalive: int = 15
    max_s: float = 20


def marker(number: int, size: int) -> str:
    """A payload that the engine knows: the event's number in its stream, and now."""
    text = f"@s={number:010d}@t={time.monotonic_ns():019d};"
    return text + "x" * max(0, size - len(text))


class Target:
    """One service; what is said here suits a service that is published to by POST /pub/NAME and read by GET /sub/NAME."""

    name = ""
    pub_kind = "http"
    """Or "resp": the engine writes to Redis itself."""
    pub_depth = 1
    cursor_key = ""
    """JSON key of data lines that holds the cursor, where it is not the frame's id."""
    only_event = ""
    id_check = False
    """The number that ends each id grows by exactly one."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.port = 0
        self.pub_port = 0

    def missing(self) -> str | None:
        """The command that installs what is not there."""
        return None

    def start(self, stage: Stage) -> None:
        """Start processes; set `port`."""
        raise NotImplementedError

    def create(self, names: Sequence[str]) -> Sequence[str]:
        """Make the streams, where that is an act of its own; their names."""
        return names

    def subscribe(self, name: str) -> tuple[str, str]:
        """The first request of a subscriber, and the one that resumes ({id} is filled in)."""
        head = f"GET /sub/{name} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
        return head + "\r\n", head + "Last-Event-ID: {id}\r\n\r\n"

    def event(self, name: str) -> str | None:
        """What the engine sends to publish a batch ({payload} once per event); None: `publish` does it."""
        batch, size = self.params.batch, self.params.size
        body = "\n".join(["{payload}"] * batch)
        return f"POST /pub/{name} HTTP/1.1\r\nHost: x\r\nContent-Length: {size * batch + batch - 1}\r\n\r\n{body}"

    def publish(self) -> None:
        """Let somebody else begin; called once when all subscribers are there."""
        raise NotImplementedError

    def filled(self, names: Sequence[str]) -> None:
        """Wait until what `publish` began is all written."""
        raise NotImplementedError


def ask(port: int, requests: Sequence[tuple[str, str, bytes, dict[str, str]]]) -> list[tuple[int, bytes]]:
    """Send requests over one connection; status and body of each."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    answers: list[tuple[int, bytes]] = []
    try:
        for method, path, body, headers in requests:
            connection.request(method, path, body, headers)
            with connection.getresponse() as response:
                answers.append((response.status, response.read()))
    finally:
        connection.close()
    return answers


@functools.cache
def lacks_module(*names: str) -> bool:
    """Whether a Python package is not installed."""
    return any(importlib.util.find_spec(name) is None for name in names)


@functools.cache
def lacks_program(name: str) -> bool:
    """Whether a program is not installed."""
    return shutil.which(name) is None

"""Services that a user would pick today; skipped with the command that installs them where they are not there."""

import os
import time
from collections.abc import Sequence
from pathlib import Path

from .engine import NATIVE
from .stage import Stage, free_port
from .target import Target, ask, lacks_program

NODE = Path(os.environ.get("BENCH_NODE", Path.home() / ".cache" / "reattach-bench"))
"""A folder whose node_modules has the npm peers; BENCH_NODE says where."""
MODULE = Path("/usr/lib/nginx/modules/ngx_nchan_module.so")


def _node(script: str) -> Sequence[str]:
    """Imports are looked up from a script's folder on, so it is copied beside node_modules."""
    copy = NODE / script
    copy.write_bytes((NATIVE / script).read_bytes())
    return ["node", str(copy)]


def _lacks(*packages: str) -> str | None:
    if not lacks_program("node") and all((NODE / "node_modules" / package).is_dir() for package in packages):
        return None
    return f"npm install --prefix {NODE} {' '.join(packages)}"


class Resumable(Target):
    """npm resumable-stream on Redis, behind node:http."""

    name = "resumable-stream"

    def missing(self) -> str | None:
        return _lacks("resumable-stream", "redis")

    def start(self, stage: Stage) -> None:
        redis, self.port = stage.redis(), free_port()
        stage.spawn("server", _node("resumable.mjs"), {"PORT": str(self.port), "REDIS_PORT": str(redis)})
        stage.wait(self.port)

    def create(self, names: Sequence[str]) -> Sequence[str]:
        ask(self.port, [("POST", f"/pub/{name}", b"", {}) for name in names])
        return names

    def subscribe(self, name: str) -> tuple[str, str]:
        return f"GET /sub/{name} HTTP/1.1\r\nHost: x\r\n\r\n", f"GET /sub/{name}?at={{bytes}} HTTP/1.1\r\nHost: x\r\n\r\n"


class Durable(Target):
    """npm @durable-streams/server: SSE, JSON, in memory."""

    name, cursor_key = "durable-streams", "streamNextOffset"

    def missing(self) -> str | None:
        return _lacks("@durable-streams/server")

    def start(self, stage: Stage) -> None:
        self.port = free_port()
        stage.spawn("server", _node("durable.mjs"), {"PORT": str(self.port), "LP": str(self.params.keepalive * 1000)})
        stage.wait(self.port)

    def create(self, names: Sequence[str]) -> Sequence[str]:
        for status, body in ask(self.port, [("PUT", f"/v1/{name}", b"", {"Content-Type": "application/json"}) for name in names]):
            assert status in (200, 201), (status, body)
        return names

    def subscribe(self, name: str) -> tuple[str, str]:
        first, again = (f"GET /v1/{name}?offset={at}&live=sse HTTP/1.1\r\nHost: x\r\n\r\n" for at in ("-1", "{id}"))
        return first, again

    def event(self, name: str) -> str:
        item, batch = '{"type":"message.delta","text":"{payload}"}', self.params.batch
        body = item if batch == 1 else f"[{','.join([item] * batch)}]"
        length = len(body) + batch * (self.params.size - len("{payload}"))
        return f"POST /v1/{name} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"


class Nchan(Target):
    """nginx with nchan: EventSource, messages in shared memory, one worker."""

    name = "nchan"
    with_redis = False

    def missing(self) -> str | None:
        return "apt-get install nginx libnginx-mod-nchan" if lacks_program("nginx") or not MODULE.exists() else None

    def start(self, stage: Stage) -> None:
        self.port = free_port()
        upstream = through = ""
        if self.with_redis:
            upstream = f"upstream store {{ nchan_redis_server redis://127.0.0.1:{stage.redis()}; }}"
            through = "nchan_redis_pass store; nchan_redis_storage_mode distributed;"
        config = stage.folder / "nginx.conf"
        config.write_text(self._config(stage.folder, upstream, through))
        stage.spawn("server", ["nginx", "-p", str(stage.folder), "-c", str(config)])
        stage.wait(self.port)
        # It listens before it is connected to its Redis, and answers 503 until then.
        end = time.monotonic() + 10
        while ask(self.port, [("POST", "/pub/ready", b"x", {})])[0][0] >= 300 and time.monotonic() < end:
            time.sleep(0.05)

    def _config(self, folder: Path, upstream: str, through: str) -> str:
        user = "user root;" if os.getuid() == 0 else ""
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        keep = "nchan_message_buffer_length 20000; nchan_message_timeout 10m;"
        read = f"nchan_subscriber_first_message oldest; nchan_eventsource_ping_interval {self.params.keepalive};"
        return f"""load_module {MODULE}; {user} daemon off; worker_processes 1; worker_rlimit_nofile 20000;
pid {folder}/nginx.pid; error_log {folder}/nginx-error.log warn; events {{ worker_connections 19000; }}
http {{ access_log off; keepalive_requests 10000000; tcp_nodelay on; nchan_shared_memory_size 512M; {temporary} {upstream}
  server {{ listen 127.0.0.1:{self.port} backlog=4096;
    location ~ ^/pub/(\\w+)$ {{ nchan_publisher http; nchan_channel_id $1; {through} {keep} }}
    location ~ ^/sub/(\\w+)$ {{ nchan_subscriber eventsource; nchan_channel_id $1; {through} {read} }} }} }}
"""

    def event(self, name: str) -> str:
        size = self.params.size  # one message per request, whatever the batch
        return f"POST /pub/{name} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n\r\n{{payload}}"


class NchanRedis(Nchan):
    """The same with its messages in Redis."""

    name, with_redis = "nchan-redis", True

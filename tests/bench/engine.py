"""The load: native/engine.c, one thread with all subscribers, one that publishes; it checks every event of every subscriber."""

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from .stage import Stage
from .target import Target, lacks_program

NATIVE = Path(__file__).parent / "native"
NO_COMPILER = "gcc is not installed; the load engine is compiled at first use: apt-get install gcc libc6-dev"


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds."""

    p50: float = 0
    p99: float = 0
    p999: float = 0
    max: float = 0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine says at a moment `ev`: ready, pub_start, done. Counts are of subscribers or of events."""

    ev: str
    t: float = 0
    ready: int = 0
    keepalives: int = 0
    conns: int = 0
    open: int = 0
    complete: int = 0
    deliveries: int = 0
    dups: int = 0
    missing: int = 0
    short: int = 0
    id_gaps: int = 0
    published: int = 0
    pub_fail: int = 0
    per_s: float = 0
    from_connect_s: float = 0
    client_cpu: float = 0
    pub_cpu: float = 0
    caught_up: int = 0
    lat_ms: Spread = Spread()
    first_ms: Spread = Spread()
    last_ms: Spread = Spread()
    caught_ms: Spread = Spread()
    error: str = ""

    def flaws(self) -> str:
        """Why this run does not count; empty if every subscriber was sent 1 … n, once and in order."""
        found = {"missing": self.missing, "too few": self.short, "repeated": self.dups, "holes in ids": self.id_gaps}
        found |= {"refused publishes": self.pub_fail, "incomplete subscribers": self.conns - self.complete}
        said = ", ".join(f"{count} {what}" for what, count in found.items() if count)
        return f"{said} {self.error}".strip() if said else ""


def build(name: str) -> Path:
    """Compile a file of native/, unless that was done since it changed.

    Raises:
        RuntimeError: There is no compiler.
    """
    source = NATIVE / f"{name}.c"
    folder = Path(tempfile.gettempdir()) / f"reattach-bench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise RuntimeError(f"{folder} belongs to somebody else")
    made = folder / f"{name}-{int(source.stat().st_mtime)}"
    if not made.exists():
        if lacks_program("gcc"):
            raise RuntimeError(NO_COMPILER)
        fresh = made.with_suffix(f".{os.getpid()}")
        subprocess.run(["gcc", "-O2", "-Wall", "-o", str(fresh), str(source), "-lpthread"], check=True)
        fresh.replace(made)  # two test processes may build at the same time
    return made


def plan(target: Target, names: Sequence[str], subs: int, options: Mapping[str, object], publishes: bool) -> str:
    """The engine's input: one line per fact, fields between tabs."""
    lines = [f"addr\t127.0.0.1\t{target.port}"]
    if publishes:
        lines.append(f"pub\t127.0.0.1\t{target.pub_port or target.port}\t{target.pub_kind}")
    if target.cursor_key:
        lines.append(f"cursor\t{target.cursor_key}")
    if target.only_event:
        lines.append(f"only\t{target.only_event}")
    lines += [f"set\t{name}\t{value}" for name, value in options.items()]
    for i, name in enumerate(names):
        if subs:
            first, again = target.subscribe(name)
            lines.append(f"sub\t{i}\t{subs}\t{_escaped(first)}\t{_escaped(again)}")
        if publishes:
            lines.append(f"ev\t{i}\t{_escaped(target.event(name) or '')}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")


def drive(stage: Stage, text: str, limit: float, on: Mapping[str, Callable[[Report], None]]) -> Report:
    """Run the engine on a plan, call `on[moment]` as it tells of moments; its last report.

    Raises:
        RuntimeError: It ended without one.
    """
    path = stage.folder / f"plan-{time.monotonic_ns()}"
    path.write_text(text)
    command, last = [str(build("engine")), str(path)], Report(ev="")
    with open(stage.folder / "engine.err", "w+") as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
        timer = threading.Timer(limit + 10, process.kill)
        timer.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                last = msgspec.json.decode(line, type=Report)
                if last.ev in on:
                    on[last.ev](last)
        finally:
            timer.cancel()
            process.kill()
        errors.seek(0)
        said = errors.read()[-400:]
    if last.ev != "done":
        raise RuntimeError(f"the engine ended early: {said} {last}")
    return last

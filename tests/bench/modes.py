"""One measurement: start a target, let the engine load it, and say what came of it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from .engine import Report, drive, plan
from .machine import Cost, Meter, memory
from .stage import Stage
from .target import Target

MODES = ("fanout", "many", "replay", "idle", "storm")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Figures by name; `flaw` says why they do not count."""

    target: str
    workload: str
    figures: Mapping[str, float] = {}
    flaw: str = ""


@dataclass
class _Moments:
    """What was measured when."""

    meter: Meter
    idle: Cost | None = None
    ready: Report | None = None
    all: Cost | None = None
    base: dict[str, int] = field(default_factory=dict[str, int])


def _options(target: Target, mode: str) -> dict[str, object]:
    p = target.params
    conns = min(p.streams, 8) if mode == "many" else 1
    options: dict[str, object] = {"until": p.n, "rate": p.rate, "window": p.window, "size": p.size, "pub_conns": conns}
    options |= {"pub_depth": p.depth or target.pub_depth, "max_s": p.max_s, "id_check": int(target.id_check), "ready_on": 1}
    options |= {name: value for name, value in {"hold": p.hold, "cut_at": p.cut_at, "gap": p.gap, "tick": p.tick}.items() if value}
    if p.by_server:
        options |= {"cut_at": 0, "reconnect": 1}
    if mode in ("idle", "storm"):
        options["src"] = 8  # addresses: one has too few ports for ten thousand connections and more
    return options


def measure(target: Target, mode: str, workload: str) -> Outcome:
    """Run once; a target that fails is an outcome too."""
    stage = Stage()
    try:
        figures, flaw = _measure(stage, target, mode)
        return Outcome(target=target.name, workload=workload, figures=figures, flaw=flaw)
    except (RuntimeError, AssertionError, OSError) as error:
        return Outcome(target=target.name, workload=workload, flaw=f"{type(error).__name__}: {error}"[:600])
    finally:
        stage.stop()


def _measure(stage: Stage, target: Target, mode: str) -> tuple[dict[str, float], str]:
    p = target.params
    target.start(stage)
    names = target.create([f"s{time.monotonic_ns() % 10**9:x}x{i}" for i in range(p.streams)])
    engine_publishes, options = target.event(names[0]) is not None, _options(target, mode)
    base = memory(stage)
    if mode == "replay":
        _fill(stage, target, names, engine_publishes, options)
        options["close_when_done"] = 1
    moments = _Moments(Meter(stage), base=base)

    def ready(report: Report) -> None:
        moments.ready = report
        moments.meter = Meter(stage) if mode == "idle" else moments.meter

    def begin(_: Report) -> None:
        if mode == "idle":
            moments.idle = moments.meter.stop()
        if mode != "replay":
            moments.meter = Meter(stage)
        if p.by_server:
            stage.restart("server", p.cut_at)
        if not engine_publishes and mode != "replay" and p.n:
            target.publish()

    def done(_: Report) -> None:
        moments.all = moments.meter.stop()

    text = plan(target, names, p.subs, options, engine_publishes and mode != "replay")
    report = drive(stage, text, p.max_s, {"ready": ready, "pub_start": begin, "done": done})
    assert moments.all is not None
    return _figures(target, mode, report, moments, moments.all), report.flaws()


def _fill(stage: Stage, target: Target, names: Sequence[str], engine_publishes: bool, options: Mapping[str, object]) -> None:
    if not engine_publishes:
        target.publish()
        target.filled(names)
        return
    report = drive(stage, plan(target, names, 0, {**options, "max_s": 60}, True), 60, {})
    if report.published < target.params.n or report.pub_fail:
        raise RuntimeError(f"the log could not be filled: {report}")


def _figures(target: Target, mode: str, report: Report, moments: _Moments, cost: Cost) -> dict[str, float]:
    """Seconds, milliseconds, microseconds and kB as the names say."""
    cpu, deliveries, conns = sum(cost.cpu.values()), max(1, report.deliveries), max(1, report.conns)
    serving = cpu - cost.cpu.get("worker", 0)
    events = max(1, report.published or target.params.n * target.params.streams)
    other = cost.busy - cpu - report.client_cpu * cost.seconds - report.pub_cpu
    found: dict[str, float] = {"per_s": report.per_s, "p50_ms": report.lat_ms.p50, "p99_ms": report.lat_ms.p99}
    found = {name: value for name, value in found.items() if value > 0}  # nothing was delivered live: no such figure
    found |= {"cpu_us": serving * 1e6 / deliveries, "client_cpu": report.client_cpu, "other_cpu": other / cost.seconds}
    if cost.redis_clients is not None:
        found |= {"redis_us": cost.cpu.get("redis", 0) * 1e6 / events, "redis_clients": cost.redis_clients}
    if mode == "replay":
        found |= {"per_s": deliveries / max(report.from_connect_s, 1e-9), "last_ms": report.last_ms.max}
    if mode == "storm":
        found |= {"caught": report.caught_up, "caught_p99_ms": report.caught_ms.p99}
    if mode == "idle":
        if moments.idle is None:
            raise RuntimeError(f"only {report.open} of {report.conns} streams opened in time: {report.error}")
        idle, grown = moments.idle, sum(moments.idle.resident.values()) - sum(moments.base.values())
        found |= {"kb_per_stream": grown / conns, "idle_cpu": sum(idle.cpu.values()) / idle.seconds}
        found |= {"other_cpu": (idle.busy - sum(idle.cpu.values())) / idle.seconds}
        if idle.redis_clients is not None:
            found["redis_clients"] = idle.redis_clients
    return found

"""The workloads and their bars, as data. A bar is a ratio between medians of the same series, or a figure alone where it has no base."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from . import floors, peers, product
from .target import Params, Target

TARGETS: Mapping[str, type[Target]] = {
    kind.name: kind
    for kind in (
        *(floors.CFloor, floors.Bare, floors.BareSend, floors.Granian, floors.Handwritten),
        *(peers.Nchan, peers.NchanRedis, peers.Resumable, peers.Durable, product.Product),
    )
}


@dataclass(frozen=True)
class Bar:
    """`figure` of Reattach, divided by that of `base`, is at most (or, where more is better, at least) `must`, and should be `aim`."""

    figure: str
    base: str | None
    must: float
    aim: float
    more: bool = False

    def meets(self, value: float, limit: float) -> bool:
        """Whether a value is on the right side of a limit."""
        return value >= limit if self.more else value <= limit


@dataclass(frozen=True)
class Workload:
    """What is run against which targets."""

    name: str
    mode: str
    params: Params
    targets: tuple[str, ...]
    bars: tuple[Bar, ...]

    def small(self) -> "Workload":
        """The same in about a second per target: shows that it works, and roughly where it stands."""
        p = self.params
        smaller = replace(p, subs=min(p.subs, 200), streams=min(p.streams, 100), n=min(p.n, 2000 if self.mode == "replay" else 40))
        if self.mode == "storm":
            smaller = replace(smaller, n=60, cut_at=min(p.cut_at, 0.5), gap=min(p.gap, 0.3))
        return replace(self, params=replace(smaller, hold=min(p.hold, 1), n=0 if self.mode == "idle" else smaller.n))


OWN, ALL = (
    "reattach",
    ("c-floor", "bare-uvicorn", "nchan", "nchan-redis", "resumable-stream", "durable-streams", "hand-written", "reattach"),
)
_MANY = Params(streams=500, subs=1, rate=20, n=60, size=120)
_IDLE = Params(streams=5000, n=0, hold=10, keepalive=2, max_s=90, size=120)
_IDLE_BARS = (Bar("kb_per_stream", None, 18, 13), Bar("idle_cpu", "nchan", 2, 1))

WORKLOADS: tuple[Workload, ...] = (
    Workload(
        *("fan-out 500 × 50/s", "fanout", Params(subs=500, rate=50, n=100), ALL),
        (Bar("cpu_us", "nchan", 1.4, 1.0), Bar("p99_ms", "c-floor", 2.0, 1.5)),
    ),
    Workload(
        *("fan-out 100 × 20/s", "fanout", Params(subs=100, rate=20, n=60), ("hand-written", OWN)),
        (Bar("cpu_us", "hand-written", 0.15, 0.09),),
    ),
    Workload(
        *("fan-out 200, closed loop", "fanout", Params(subs=200, n=3000, window=64, tick=1, depth=16, max_s=40), ("nchan", OWN)),
        (Bar("per_s", "nchan", 2, 4, more=True),),
    ),
    Workload(
        *("500 runs × 20/s × 1", "many", _MANY, ("hand-written", OWN)),
        (Bar("p99_ms", None, 15, 5), Bar("redis_clients", None, 8, 4)),
    ),
    Workload(*("500 runs × 20/s × 2", "many", replace(_MANY, subs=2), (OWN,)), (Bar("p99_ms", None, 25, 15),)),
    Workload(
        *("replay 10,000 × 1", "replay", Params(subs=1, n=10_000, batch=50, max_s=40), ("nchan", "hand-written", OWN)),
        (Bar("per_s", "hand-written", 8, 15, more=True),),
    ),
    Workload(
        *("replay 10,000 × 20", "replay", Params(subs=20, n=10_000, batch=50, max_s=60), ("nchan", "hand-written", OWN)),
        (Bar("per_s", "nchan", 10, 28, more=True), Bar("per_s", "hand-written", 30, 90, more=True)),
    ),
    Workload("idle 5,000", "idle", _IDLE, ("nchan", OWN), _IDLE_BARS),
    Workload("idle 9,900", "idle", replace(_IDLE, streams=9900), ("nchan", OWN), _IDLE_BARS),
    Workload(
        *("storm of 2,000", "storm", Params(subs=2000, rate=10, n=60, cut_at=1.5, gap=1), ("c-floor", "nchan", OWN)),
        (Bar("caught_p99_ms", "nchan", 2, 1),),
    ),
    Workload(
        *("storm through a restart, 300", "storm", Params(subs=300, rate=20, n=160, cut_at=1.5, by_server=True, max_s=30), (OWN,)),
        (Bar("caught_p99_ms", None, 1500, 500),),
    ),
    Workload("the same ASGI app under two servers", "fanout", Params(subs=500, rate=50, n=100), ("asgi-uvicorn", "asgi-granian"), ()),
)
APPENDS: Mapping[int, Bar] = {
    batch: Bar("per_s", "raw XADD", must, aim, more=True) for batch, must, aim in ((1, 0.5, 0.7), (8, 0.7, 0.85), (32, 0.8, 0.9))
}

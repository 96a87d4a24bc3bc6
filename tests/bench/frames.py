"""What it costs to make a frame, in this process alone."""

import time

from reattach.core.event import Event
from reattach.tail import Framer

from .measure import median, table
from .payload import payload

_COUNT = 20_000


def run(*, repetitions: int) -> str:
    """Encode a long text run, again and again."""
    events = [Event(n, "message.delta", 1_788_430_471_000 + n // 4, payload(n)) for n in range(1, _COUNT + 1)]
    took: list[float] = []
    for _ in range(max(3, repetitions)):
        framer = Framer(run_id="run_00" + "0" * 24, release_id="unreleased", scope="dev/ticket_981")
        begun = time.perf_counter()
        for event in events:
            framer.frame(event)
        took.append((time.perf_counter() - begun) / _COUNT)
    return table("Frames, encoded once per process and event", ["", "CPU"], [["per frame", f"{median(took) * 1e6:.2f} µs"]])

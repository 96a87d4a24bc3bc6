"""The agent of the bench: waits for a gate, then says numbered deltas at a rate."""

import asyncio
import os
import time
from typing import Any

from reattach import Agents, Run

from .target import marker

agents = Agents()


@agents.agent("bench")
async def bench(run: Run) -> dict[str, Any]:
    """Write `n` deltas, `rate` per second."""
    spec: Any = run.input
    while not os.path.exists(spec["gate"]):  # noqa: ASYNC240, ASYNC110
        await asyncio.sleep(0.005)
    period = 1 / spec["rate"] if spec["rate"] else 0.0
    # Spread over one period: a thousand runs do not tick together.
    begun = time.monotonic() + (hash(run.run_id) % 1000) / 1000 * period
    async with run.message() as message:
        for number in range(1, spec["n"] + 1):
            if period and (pause := begun + number * period - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            await message.write(marker(number, spec["size"]))
    return {"written": spec["n"]}

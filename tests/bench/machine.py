"""What processes cost: CPU and memory from /proc, and Redis' own counters, between two moments."""

import os
import time
from dataclasses import dataclass, field

import redis

from .stage import Stage


def cpu_seconds(pid: int) -> float:
    """Time on a CPU of all live threads; schedstat is finer than the 10 ms ticks of /proc/PID/stat."""
    total = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                total += int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        pass  # a thread or process that ended meanwhile
    return total / 1e9


def resident_kb(pid: int) -> int:
    """Memory that is in use now; 0 where the process is gone."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    except OSError:
        return 0


def busy_seconds() -> float:
    """CPU that the whole machine has used so far."""
    with open("/proc/stat") as file:
        ticks = [int(value) for value in file.readline().split()[1:]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """Of one window: seconds of CPU by role, kB by role at its end, the machine's CPU, Redis' clients and commands."""

    seconds: float
    cpu: dict[str, float]
    resident: dict[str, int]
    busy: float
    redis_clients: int | None = None
    redis_commands: int | None = None


@dataclass
class Meter:
    """Starts when made; `stop` may be asked again and again."""

    stage: Stage
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._cpu = {role: sum(map(cpu_seconds, pids)) for role, pids in self.stage.pids().items()}
        self._busy = busy_seconds()
        self._redis = _counters(self.stage.redis_port)

    def stop(self) -> Cost:
        """What was spent since the start."""
        seconds, busy, pids = time.monotonic() - self.began, busy_seconds() - self._busy, self.stage.pids()
        cpu = {role: sum(map(cpu_seconds, found)) - self._cpu.get(role, 0.0) for role, found in pids.items()}
        resident = memory(self.stage)
        if self._redis is None or (now := _counters(self.stage.redis_port)) is None:
            return Cost(seconds, cpu, resident, busy)
        return Cost(seconds, cpu, resident, busy, now[0], now[1] - self._redis[1])


def memory(stage: Stage) -> dict[str, int]:
    """Kilobytes by role."""
    return {role: sum(map(resident_kb, pids)) for role, pids in stage.pids().items()}


def _counters(port: int) -> tuple[int, int] | None:
    """Clients without the one that asks, and commands so far."""
    if not port:
        return None
    with redis.Redis(port=port) as client:
        said: dict[str, int] = client.info("everything")  # pyright: ignore[reportUnknownMemberType]
    return int(said["connected_clients"]) - 1, int(said["total_commands_processed"])

"""Child processes: bound to the one that started them, restarted when they crash."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reattach.cli import children, tether
from reattach.cli.children import Child, Keeper, describe_exit
from reattach.core.errors import StoreUnavailable

from ..support.processes import Child as Process
from ..support.waiting import wait_until
from .shell import environment, is_running, wait_gone

LINUX = sys.platform == "linux"
MODES = ["exec", "watch"] if LINUX else ["watch"]
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]
STUBBORN = [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); print('here', flush=True); time.sleep(600)"]


@pytest.fixture
def holder(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Process]:
    """A process that holds a child bound to it in one of the two ways."""
    process = Process("holder", [sys.executable, "-m", "tests.cli.holder", "child", request.param], log=tmp_path / "log", env=environment())
    process.start()
    yield process
    process.close()


@pytest.mark.parametrize("holder", MODES, indirect=True)
def test_a_child_ends_with_the_process_that_started_it(holder: Process) -> None:
    """A kill -9 leaves no time to clean up; the child ends all the same."""
    holder.wait_for_output("child ")
    pid = int(holder.output().split()[1])
    assert is_running(pid)
    holder.kill9()
    wait_gone(pid)


@pytest.mark.skipif(not LINUX, reason="the kernel's own watch exists on Linux only")
def test_a_parent_that_was_gone_already_is_noticed(tmp_path: Path) -> None:
    """Between fork and the request to the kernel the parent may die: the program is not even begun."""
    marker = tmp_path / "ran"
    program = [sys.executable, "-c", f"open({str(marker)!r}, 'w')"]
    ended = subprocess.run([sys.executable, "-I", "-S", tether.__file__, "exec", "1", "15", *program], check=False)
    assert ended.returncode == 1
    assert not marker.exists()


@pytest.mark.parametrize("mode", MODES)
async def test_exit_codes_come_through(mode: str) -> None:
    """What the program ended with is what the parent is told."""
    child = await Child.spawn([sys.executable, "-c", "raise SystemExit(7)"], orphaned=signal.SIGTERM, mode=mode)
    assert await child.wait() == 7


@pytest.mark.parametrize("mode", MODES)
async def test_a_missing_program_is_one_sentence(mode: str, capfd: pytest.CaptureFixture[str]) -> None:
    """No traceback of the tether, and the code a shell would give."""
    child = await Child.spawn(["/nonexistent/program"], orphaned=signal.SIGTERM, mode=mode)
    assert await child.wait() == 127
    assert capfd.readouterr().err == "/nonexistent/program: No such file or directory\n"


async def test_the_terminals_signals_do_not_reach_a_child() -> None:
    """A Ctrl-C goes to everything in the terminal's group; children are asked to stop by their parent, in its order."""
    child = await Child.spawn(SLEEPER, orphaned=signal.SIGTERM)
    await wait_until(lambda: os.getsid(child.pid) == child.pid, "a session of its own")
    assert await child.stop(5) == -signal.SIGTERM


async def test_a_child_that_does_not_listen_is_killed(capfd: pytest.CaptureFixture[str]) -> None:
    """Patience ends."""
    child = await Child.spawn(STUBBORN, orphaned=signal.SIGTERM)
    await wait_until(lambda: "here" in capfd.readouterr().out, "the child to ignore SIGTERM")
    assert await child.stop(0.1) == -signal.SIGKILL
    assert await child.stop(0.1) == -signal.SIGKILL


async def test_a_child_that_crashes_is_started_again() -> None:
    """Each crash is told in words, and the next child is another process."""
    said: list[str] = []
    started: list[Child] = []

    async def start() -> Child:
        started.append(await Child.spawn(SLEEPER, orphaned=signal.SIGTERM))
        return started[-1]

    keeper = Keeper(start, said.append)
    first = await keeper.start()
    first.kill()
    await wait_until(lambda: len(started) == 2, "a second child")
    assert said == ["was ended by SIGKILL; starting again"]
    await wait_until(lambda: keeper.child is started[1], "the keeper to know it")
    await keeper.stop(5)
    assert not started[1].running
    assert len(started) == 2


async def test_a_restart_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store whose disk is full today starts tomorrow; every failed try is told."""
    monkeypatch.setattr(children, "_FIRST_PAUSE", 0.01)
    said: list[str] = []
    tries = 0

    async def start() -> Child:
        nonlocal tries
        tries += 1
        if tries in (2, 3):
            raise StoreUnavailable("no room")
        return await Child.spawn(SLEEPER, orphaned=signal.SIGTERM)

    keeper = Keeper(start, said.append)
    first = await keeper.start()
    first.kill()
    await wait_until(lambda: keeper.child is not first, "a child that runs")
    assert said == ["was ended by SIGKILL; starting again", "no room; starting again", "no room; starting again"]
    await keeper.stop(5)


async def test_stopping_ends_a_restart_under_way() -> None:
    """A keeper that is stopped between two lives starts no third one."""
    waiting = asyncio.Event()
    lives = 0

    async def start() -> Child:
        nonlocal lives
        lives += 1
        if lives == 2:
            waiting.set()
            await asyncio.Event().wait()
        return await Child.spawn(SLEEPER, orphaned=signal.SIGTERM)

    keeper = Keeper(start, lambda _: None)
    (await keeper.start()).kill()
    await waiting.wait()
    await keeper.stop(1)
    assert lives == 2


def test_exit_codes_are_words() -> None:
    """Signals have names."""
    assert describe_exit(3) == "ended with exit code 3"
    assert describe_exit(-9) == "was ended by SIGKILL"
    assert describe_exit(-99) == "was ended by signal 99"

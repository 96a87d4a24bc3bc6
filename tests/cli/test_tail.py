"""``reattach tail``: follows, resumes, and ends as the run did."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

from reattach.core.settings import Settings
from reattach.store import Store

from ..support.drive import Hand, create, start
from ..support.launch import environment as settings_env
from ..support.servers import RedisServer
from ..support.waiting import wait_until
from . import shell
from .shell import in_terminal, plain, reattach


class Tail:
    """A ``reattach tail`` whose lines are read as they come."""

    def __init__(self, settings: Settings, *arguments: str) -> None:
        env = shell.environment(settings_env(settings))
        command = shell.command("tail", *arguments)
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert self.process.stdout is not None
        self.out: IO[bytes] = self.process.stdout
        os.set_blocking(self.out.fileno(), False)
        self._seen = b""

    def events(self) -> list[dict[str, Any]]:
        """Every whole line so far."""
        while part := self.out.read():
            self._seen += part
        return [json.loads(line) for line in self._seen.split(b"\n")[:-1]]

    def sequences(self) -> list[int]:
        """Their numbers."""
        return [event["sequence"] for event in self.events()]

    async def until(self, sequence: int) -> None:
        """Wait until it has shown an event."""
        await wait_until(lambda: (self.sequences() or [0])[-1] >= sequence, f"event {sequence} in {self.process.args}")

    async def says(self, text: str) -> None:
        """Wait until it said something beside the events."""
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)
        said = b""

        def there() -> bool:
            nonlocal said
            said += (self.process.stderr and self.process.stderr.read()) or b""
            return text.encode() in said

        await wait_until(there, f"{text!r} from {self.process.args}")
        os.set_blocking(self.process.stderr.fileno(), True)

    def end(self) -> tuple[int, str]:
        """Wait until it ended; its exit code and what it said beside the events."""
        assert self.process.stderr is not None
        code = self.process.wait(15)
        self.events()
        return code, self.process.stderr.read().decode()

    def close(self) -> None:
        """Make sure that it is gone."""
        self.process.kill()
        self.process.wait(10)
        self.out.close()
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.fixture
def tail(settings: Settings) -> Iterator[Callable[..., Tail]]:
    """Start tails that end with the test."""
    started: list[Tail] = []

    def one(*arguments: str, given: Settings = settings) -> Tail:
        started.append(Tail(given, *arguments))
        return started[-1]

    yield one
    for each in started:
        each.close()


async def test_a_run_is_followed_to_its_end(tail: Callable[..., Tail], store: Store) -> None:
    """One event per line, as clients see it; the exit code is the run's."""
    hand = await start(store)
    following = tail(hand.run_id)
    await following.until(2)
    await hand.emit(("step.done", {"n": 9007199254740993}))
    await following.until(3)
    await hand.finish(outcome={"ok": True})
    assert following.end() == (0, "")
    assert following.sequences() == [1, 2, 3, 4]
    third = following.events()[2]
    assert third["event_id"] == f"{hand.run_id}:3"
    assert third["payload"] == {"n": 9007199254740993}


@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("failed", 1), ("cancelled", 3)])
async def test_the_exit_code_is_how_the_run_ended(store: Store, settings: Settings, state: str, code: int) -> None:
    """Also when it had ended before, and when nothing is left to show."""
    hand = await start(store)
    if state == "cancelled":
        await store.runs.cancel(hand.run_id, by="test", reason=None, key=None, fingerprint="")
    await hand.finish(state)
    env = settings_env(settings)
    assert reattach("tail", hand.run_id, env=env).returncode == code
    last = (await store.runs.load(hand.run_id)).sequence
    ended = reattach("tail", hand.run_id, "--after", str(last), env=env)
    assert (ended.returncode, ended.stdout, ended.stderr) == (code, "", "")


async def test_a_cursor_is_gone_on_from(store: Store, settings: Settings) -> None:
    """Both forms."""
    hand = await start(store)
    await hand.emit_many(5)
    await hand.finish()
    for cursor in ("4", f"{hand.run_id}:4"):
        ended = reattach("tail", hand.run_id, "--after", cursor, env=settings_env(settings))
        assert [json.loads(line)["sequence"] for line in ended.stdout.splitlines()] == [5, 6, 7, 8]


async def test_cursors_that_cannot_be_gone_on_from_are_explained(store: Store, settings: Settings) -> None:
    """Code 4, a sentence with the error's code, no event."""
    hand = await start(store)
    await hand.finish()
    other = await start(store)
    await other.finish()
    expected = {"nine": "malformed_cursor", "9": "future_cursor", f"{other.run_id}:1": "cursor_run_mismatch"}
    for cursor, error in expected.items():
        ended = reattach("tail", hand.run_id, "--after", cursor, env=settings_env(settings))
        assert (ended.returncode, ended.stdout) == (4, "")
        assert f"[{error}]" in ended.stderr
        assert ended.stderr.count("\n") == 1


async def test_a_run_that_nobody_serves_is_explained(tail: Callable[..., Tail], store: Store) -> None:
    """After a moment, on standard error; the run is followed all the same."""
    run_id = await create(store, "suport")
    following = tail(run_id)
    await following.says("no worker with a free slot serves agent suport")
    await store.runs.cancel(run_id, by="test", reason=None, key=None, fingerprint="")
    assert following.end()[0] == 3
    assert following.sequences() == [1, 2, 3]


def test_a_run_that_does_not_exist(settings: Settings) -> None:
    """The way to those that do is named."""
    for name in ("run_x", "run_00000000000000000000000000"):
        ended = reattach("tail", name, env=settings_env(settings))
        assert ended.returncode == 4
        assert ended.stderr == "Error: There is no such run. [run_not_found]; find runs with: reattach runs ls\n"


async def test_it_goes_on_when_redis_comes_back(
    tail: Callable[..., Tail], own_redis: Callable[..., RedisServer], settings: Settings
) -> None:
    """A restart is waited for; after it nothing is missing and nothing comes twice."""
    server = own_redis(persist=True)
    mine = msgspec.structs.replace(settings, redis=server.url)
    store = await Store.open(mine)
    try:
        hand = await start(store)
        following = tail(hand.run_id, given=mine)
        await hand.emit_many(3)
        await following.until(5)
        server.kill9()
        down = time.monotonic()
        await wait_until(lambda: time.monotonic() - down > 3, "an outage longer than its patience")
        server.start()
        await hand.emit_many(3, start=4)
        await hand.finish()
        code, said = following.end()
    finally:
        await store.close()
    assert code == 0
    assert following.sequences() == list(range(1, 10))
    assert said.startswith("the store is away; going on behind event 5 when it is back")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
async def test_output_that_cannot_be_written_is_no_failed_run(store: Store, settings: Settings) -> None:
    """A full disk is said in a sentence, and the exit code is not that of a run that failed."""
    hand = await start(store)
    await hand.finish()
    env = shell.environment(settings_env(settings))
    shell_command = ["sh", "-c", f"{' '.join(shell.command('tail', hand.run_id))} > /dev/full"]
    ended = await asyncio.to_thread(subprocess.run, shell_command, env=env, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 4
    assert ended.stderr == "Error: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("events", [2, 2000])
async def test_a_reader_that_has_seen_enough_ends_it_quietly(store: Store, settings: Settings, events: int) -> None:
    """``reattach tail RUN | head -1``, also while the run says nothing."""
    hand = await start(store)
    await hand.emit_many(events)
    env = shell.environment(settings_env(settings))
    piped = f"{' '.join(shell.command('tail', hand.run_id))} | head -1"
    shell_command = ["sh", "-c", piped]
    ended = await asyncio.to_thread(subprocess.run, shell_command, env=env, capture_output=True, text=True, timeout=20, check=False)
    assert json.loads(ended.stdout)["sequence"] == 1
    assert ended.stderr == ""
    await hand.finish()


async def test_ctrl_c_leaves_and_says_how_to_go_on(tail: Callable[..., Tail], store: Store) -> None:
    """Nothing changes for the run."""
    hand = await start(store)
    following = tail(hand.run_id)
    await following.until(2)
    following.process.send_signal(2)
    code, said = following.end()
    assert code == 130
    assert said == f"\nthe run goes on; follow it with: reattach tail {hand.run_id} --after 2\n"
    assert (await store.runs.load(hand.run_id)).cancel_version == 0
    await hand.finish()


async def test_a_person_sees_text_and_colours(store: Store, settings: Settings, tmp_path: Path) -> None:
    """In a terminal: no JSON unless it is asked for."""
    hand: Hand = await start(store)
    await hand.emit(("message.delta", {"message_id": "m", "text": "Good"}), ("message.delta", {"message_id": "m", "text": " news"}))
    await hand.finish(outcome={"ok": 1})
    code, shown = in_terminal("tail", hand.run_id, env=settings_env(settings))
    assert code == 0
    assert "message  Good news\n" in plain(shown)
    assert "\x1b[32msucceeded" in shown
    assert "\x1b" not in in_terminal("tail", hand.run_id, env={**settings_env(settings), "NO_COLOR": "1"})[1]
    code, shown = in_terminal("tail", hand.run_id, "--json", env=settings_env(settings))
    assert [json.loads(line)["sequence"] for line in shown.splitlines()] == [1, 2, 3, 4, 5]

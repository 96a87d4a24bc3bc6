"""``reattach work``: agents are found, or it is said why not."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from reattach.cli.work import load_agents
from reattach.core.settings import Settings
from reattach.store import Store

from ..support.drive import create
from ..support.launch import environment
from ..support.waiting import wait_until, wait_until_sync
from .shell import Service, reattach

MODULES = {
    "good": "from reattach import Agents\nagents = Agents()\n@agents.agent('one')\nasync def one(run): return 1\n",
    "named": "from reattach import Agents\nmine = Agents()\n@mine.agent('one')\nasync def one(run): return 1\n",
    "empty": "from reattach import Agents\nagents = Agents()\n",
    "other": "agents = 5\n",
    "nothing": "",
    "needs": "import surely_not_installed\n",
    "broken": "def f(:\n",
    "sync": "from reattach import Agents\nagents = Agents()\n@agents.agent('one')\ndef one(run): return 1\n",
    "fails": "x = 1\nraise ValueError('no luck')\n",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with modules of every kind, as the current one."""
    for name, text in MODULES.items():
        (tmp_path / f"its_{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    yield tmp_path


def test_agents_are_found_from_the_current_folder(here: Path) -> None:
    """As a person names them who stands there."""
    assert list(load_agents("its_good:agents")) == ["one"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("its_good", "'its_good' does not name agents: give a module and a name in it, like its_good:agents"),
        ("./its_good.py:agents", "like its_good:agents"),
        ("its_good.py:agents", "like its_good:agents"),
        ("READ-ME.md", "like shop.agents:agents"),
        ("its_sync:agents", "cannot be imported (line 3 of {here}/its_sync.py): TypeError: the handler of agent 'one' must be an async"),
        ("nowhere:agents", "there is no module nowhere: neither in {here} nor installed"),
        ("its_named:agents", "the module its_named has no 'agents'; did you mean its_named:mine?"),
        ("its_nothing:agents", "the module its_nothing has no 'agents'; it needs a line like: agents = Agents()"),
        ("its_other:agents", "the module its_other has a 'agents' that is no reattach.Agents but int"),
        ("its_empty:agents", 'its_empty:agents holds no agent: decorate a function with @agents.agent("name")'),
        ("its_needs:agents", "cannot be imported (line 1 of {here}/its_needs.py): No module named 'surely_not_installed'"),
        ("its_fails:agents", "cannot be imported (line 2 of {here}/its_fails.py): ValueError: no luck"),
        ("its_broken:agents", "the module its_broken cannot be imported: SyntaxError"),
    ],
)
def test_agents_that_are_not_found_are_explained(here: Path, name: str, sentence: str) -> None:
    """Each mistake has its own sentence."""
    with pytest.raises(click.UsageError) as refused:
        load_agents(name)
    assert sentence.format(here=here) in refused.value.message


def test_wrong_agents_end_with_2(here: Path) -> None:
    """A sentence with the usage, no traceback."""
    ended = reattach("work", "its_fails:agents", cwd=here)
    assert ended.returncode == 2
    assert "Error: the module its_fails cannot be imported" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.fixture
def worker(settings: Settings, tmp_path: Path) -> Iterator[Service]:
    """A worker with the scripted agent."""
    service = Service(tmp_path, "work", "tests.support.agents:agents", env=environment(settings))
    service.start()
    service.wait_for_output("worker.started")
    yield service
    service.close()


async def test_a_worker_works_and_stops(worker: Service, store: Store) -> None:
    """SIGTERM ends it with 0; what it worked on is handed over."""
    steps = json.dumps({"steps": [["emit", "step.done", {"n": 1}], ["sleep", 60]]}).encode()
    run_id = await create(store, "script", input=steps)

    async def sequence() -> bool:
        return (await store.runs.load(run_id)).sequence >= 3

    await wait_until(sequence, "the run to be under way")
    worker.term()
    assert worker.wait() == 0
    assert (await store.runs.load(run_id)).state == "queued"
    assert "agents script" in worker.output()
    await store.runs.cancel(run_id, by="test", reason=None, key=None, fingerprint="")


async def test_a_handler_that_blocks_cannot_keep_a_worker_from_being_ended(worker: Service, store: Store, settings: Settings) -> None:
    """The loop is blocked, so draining never happens; the third signal does not need it."""
    run_id = await create(store, "script", input=json.dumps({"steps": [["block", 600]]}).encode())

    async def running() -> bool:
        return (await store.runs.load(run_id)).state == "running"

    await wait_until(running, "the run to be under way")
    worker.term()
    worker.term()

    def ended() -> bool:
        worker.term()
        return not worker.alive

    wait_until_sync(ended, "the worker to be ended", timeout=5)
    assert worker.wait() == 128 + 15
    assert "ended at once" in worker.output()
    await store.runs.cancel(run_id, by="test", reason=None, key=None, fingerprint="")
    await _settle(store, run_id)


async def _settle(store: Store, run_id: str) -> None:
    """Let the sweep end a run whose worker is gone and that was asked to stop."""

    async def ended() -> bool:
        await store.sweep.once()
        return (await store.runs.load(run_id)).terminal

    await wait_until(ended, "the run to end")

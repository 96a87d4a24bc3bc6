"""``reattach dev``, from one end to the other: started, used, killed in every way, and started again."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ..support.waiting import wait_until_sync
from .shell import Service, in_terminal, is_running, reattach, wait_gone

AGENTS = "tests.support.agents:agents"
Dev = Callable[..., Service]


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Dev]:
    """Start ``reattach dev`` on a folder of the test's own and wait until everything runs."""
    started: list[Service] = []

    def one(*arguments: str, wait: str = "reattach tail RUN", **env: str) -> Service:
        folder = tmp_path / f"life-{len(started)}"
        folder.mkdir()
        given = ["dev", *arguments, "--port", "0", "--data", str(tmp_path / "data"), "--lease", "1", "--grace", "3"]
        started.append(Service(folder, *given, env=env))
        started[-1].start()
        started[-1].wait_for_output(wait)
        return started[-1]

    yield one
    for service in started:
        pids = service.children().values() if service.alive else ()
        service.close()
        wait_gone(*pids)
        assert "Traceback" not in service.output(), service.output()[-6000:]


def ask(service: Service, method: str, path: str, status: int = 200, **options: Any) -> dict[str, Any]:
    """One request; what went wrong is in the service's own words."""
    answer = httpx.request(method, f"{service.url}{path}", trust_env=False, **options)
    assert answer.status_code == status, f"{answer.text}\n{service.output()[-4000:]}"
    return answer.json()


def create(service: Service, agent: str = "support", **given: Any) -> str:
    """Create a run over HTTP."""
    return ask(service, "POST", "/agent-runs", 201, json={"agent": agent, "input": given})["run_id"]


def snapshot(service: Service, run_id: str) -> dict[str, Any]:
    """A run as it is."""
    return ask(service, "GET", f"/agent-runs/{run_id}")


def events(service: Service, run_id: str) -> list[dict[str, Any]]:
    """Its events."""
    return ask(service, "GET", f"/agent-runs/{run_id}/events", params={"limit": "1000"})["events"]


def wait_for(service: Service, run_id: str, what: Callable[[dict[str, Any]], bool], description: str) -> dict[str, Any]:
    """Wait until a run has come somewhere."""

    def found() -> dict[str, Any] | None:
        seen = snapshot(service, run_id)
        return seen if what(seen) else None

    seen = wait_until_sync(found, description, timeout=20)
    assert seen is not None
    return seen


def ended(seen: dict[str, Any]) -> bool:
    """Whether a run has ended."""
    return seen["finished_at"] is not None


def test_one_command_starts_everything_and_a_signal_ends_it(dev: Dev, tmp_path: Path) -> None:
    """The demo runs; each part has its line; Ctrl-C ends with 0 and leaves no process."""
    service = dev()
    lines = {
        line.split()[0]: line.split(maxsplit=1)[1] for line in service.output().splitlines() if line.startswith("  ") and line[2] != " "
    }
    assert list(lines) == ["store", "api", "auth", "worker", "page", "try"]
    assert f"everything is kept in {tmp_path / 'data'}" in lines["store"]
    assert lines["api"] == service.url
    assert "(support, refund)" in lines["worker"]
    assert "<title>Reattach</title>" in httpx.get(lines["page"], trust_env=False).text
    run_id = create(service, ticket=981, speed=0)
    seen = wait_for(service, run_id, ended, "the demo's run to end")
    assert seen["state"] == "succeeded"
    assert seen["resources"]
    tailed = reattach("tail", run_id, "--data", str(tmp_path / "data"))
    assert tailed.returncode == 0
    assert len(tailed.stdout.splitlines()) == seen["sequence"]
    pids = service.children()
    assert set(pids) == {"store", "worker"}
    # As a terminal sends it: to everything in its group. The children are not in it, and end in their order.
    os.killpg(service.process.pid, signal.SIGINT)
    assert service.wait() == 0
    assert not [pid for pid in pids.values() if is_running(pid)]
    assert f"stopped everything is kept in {tmp_path / 'data'}\n" in service.output()


def test_a_run_that_nobody_serves_is_told_of(dev: Dev, tmp_path: Path) -> None:
    """A mistyped agent waits for ever, and in silence if nobody said so; one that is served is not told of."""
    service = dev(AGENTS)
    served, stranger = create(service, "script", steps=[]), create(service, "suport")
    service.wait_for_output("no worker with a free slot serves agent suport; the run waits for one")
    wait_for(service, served, ended, "the other run to end")
    _, shown = in_terminal("runs", "show", stranger, "--data", str(tmp_path / "data"))
    assert "no worker with a free slot serves agent suport" in shown
    assert "no worker" not in in_terminal("runs", "show", served, "--data", str(tmp_path / "data"))[1]
    assert service.output().count("no worker") == 1


def test_a_drain_hands_over_and_the_next_start_goes_on(dev: Dev, tmp_path: Path) -> None:
    """A run under way is not failed by a stop; its second pass continues the log."""
    service = dev(AGENTS)
    steps = [["emit", "step.done", {"n": 1}], ["effect", str(tmp_path / "count")], ["sleep", 2], ["finish", {"ok": True}]]
    run_id = create(service, "script", steps=steps)
    wait_for(service, run_id, lambda seen: len(seen["tools"]) == 1 and seen["tools"][0]["status"] == "completed", "its effect")
    service.term()
    assert service.wait() == 0
    again = dev(AGENTS)
    seen = wait_for(again, run_id, ended, "the run to end")
    assert seen["state"] == "succeeded"
    assert [event["sequence"] for event in events(again, run_id)] == list(range(1, seen["sequence"] + 1))
    assert (tmp_path / "count").read_text().count("\n") == 1


@pytest.mark.parametrize("whole", [True, False], ids=["everything", "only dev"])
def test_kill_9_loses_nothing(dev: Dev, whole: bool) -> None:
    """The run and its log are there after a restart on the same folder, and the run goes on to its end."""
    service = dev(AGENTS)
    done = create(service, "script", steps=[["text", "all of it"], ["finish", 1]])
    before = wait_for(service, done, ended, "the first run to end")
    half = create(service, "script", steps=[["emit", "step.done", {"n": 1}], ["sleep", 2], ["emit", "step.done", {"n": 2}]])
    shown = wait_for(service, half, lambda seen: seen["sequence"] >= 3, "the second run to be under way")
    log = events(service, half)
    pids = service.children()
    if whole:
        for pid in pids.values():
            os.kill(pid, signal.SIGKILL)
    service.kill9()
    wait_gone(*pids.values())
    again = dev(AGENTS)
    assert snapshot(again, done) == before
    assert events(again, half)[: len(log)] == log
    seen = wait_for(again, half, ended, "the second run to end")
    assert seen["state"] == "succeeded"
    assert seen["attempt"] > shown["attempt"]
    assert [event["sequence"] for event in events(again, half)] == list(range(1, seen["sequence"] + 1))


def test_parts_that_crash_are_started_again(dev: Dev) -> None:
    """Each is told; the API stays up, and a run goes on through both."""
    service = dev(AGENTS)
    run_id = create(service, "script", steps=[["emit", "step.done", {"n": 1}], ["sleep", 2], ["finish", 1]])
    wait_for(service, run_id, lambda seen: seen["sequence"] >= 3, "the run to be under way")
    pids = service.children()
    os.kill(pids["worker"], signal.SIGKILL)
    service.wait_for_output("worker  was ended by SIGKILL; starting again")
    wait_until_sync(lambda: service.children().get("worker", pids["worker"]) != pids["worker"], "another worker")
    os.kill(pids["store"], signal.SIGKILL)
    service.wait_for_output("store   was ended by SIGKILL; starting again")
    wait_until_sync(lambda: service.children().get("store", pids["store"]) != pids["store"], "another server")

    def succeeded() -> bool:
        answer = httpx.get(f"{service.url}/agent-runs/{run_id}", trust_env=False)
        return answer.status_code == 200 and answer.json()["state"] == "succeeded"

    wait_until_sync(succeeded, "the run to end", timeout=20)


def test_an_agent_that_blocks_does_not_freeze_the_api(dev: Dev) -> None:
    """The worker is another process, and a stop does not wait for it for ever."""
    service = dev(AGENTS)
    run_id = create(service, "script", steps=[["block", 600]])
    wait_for(service, run_id, lambda seen: seen["state"] == "running", "the agent to block")
    assert httpx.get(f"{service.url}/healthz", timeout=2, trust_env=False).status_code == 200
    pids = service.children()

    def gone() -> bool:
        # The second signal that is not the first one's echo does not wait for the worker to drain.
        service.term()
        return not service.alive

    wait_until_sync(gone, "a stop that does not wait", timeout=3)
    assert service.wait() == 128 + signal.SIGTERM
    wait_gone(*pids.values())


def test_a_signal_that_comes_twice_is_one(dev: Dev) -> None:
    """``timeout`` and others tell the process and then its group: it drains all the same."""
    service = dev(AGENTS)
    service.term()
    os.killpg(service.process.pid, signal.SIGTERM)
    assert service.wait() == 0


def test_a_folder_in_use_is_refused(dev: Dev, tmp_path: Path) -> None:
    """In one sentence that says by whom; the one that runs is not disturbed."""
    service = dev(AGENTS)
    refused = reattach("dev", "--port", "0", "--data", str(tmp_path / "data"))
    assert (refused.returncode, refused.stdout) == (4, "")
    assert f"is in use by `reattach dev` (process {service.process.pid}, since " in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert httpx.get(f"{service.url}/readyz", trust_env=False).status_code == 200


def test_other_commands_find_the_store(dev: Dev, tmp_path: Path) -> None:
    """A second API and a second worker beside it, and doctor."""
    dev(AGENTS)
    data = ("--data", str(tmp_path / "data"))
    assert reattach("doctor", *data).returncode == 0
    beside = Service(tmp_path, "serve", "--port", "0", *data)
    try:
        beside.start()
        beside.wait_for_output("auth ")
        run_id = create(beside, "script", steps=[["finish", 1]])
        assert wait_for(beside, run_id, ended, "the run to end")["state"] == "succeeded"
        beside.term()
        assert beside.wait() == 0
    finally:
        beside.close()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["nowhere:agents"], 2, "Error: there is no module nowhere: neither in "),
        (["--host", "0.0.0.0"], 4, "without authentication the API serves this machine only"),
        (["--port", "{taken}"], 4, "cannot listen on 127.0.0.1 port {taken}: Address already in use; choose another with --host or --port"),
        (["--redis", "redis://127.0.0.1:1", "--redis-timeout", "0.2"], 4, "the store cannot be reached now [store_unavailable]"),
    ],
)
def test_what_cannot_be_started_is_one_sentence(tmp_path: Path, arguments: list[str], code: int, sentence: str) -> None:
    """No traceback, and nothing that was started for it goes on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = [argument.format(taken=port) for argument in arguments]
        refused = reattach("dev", "--data", str(tmp_path / "data"), *(["--port", "0"] if "--port" not in given else []), *given)
    assert refused.returncode == code
    assert sentence.format(taken=port) in refused.stderr
    assert "Traceback" not in refused.stderr
    assert reattach("runs", "ls", "--data", str(tmp_path / "data")).returncode == 4
    if code == 2:
        assert refused.stdout == "" and not (tmp_path / "data").exists(), "something was started before the name was looked at"

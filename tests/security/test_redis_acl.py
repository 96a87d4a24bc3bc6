"""``deploy/redis-acl.conf``: the least that Reattach needs of Redis, and nothing that it does not use."""

import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from reattach.cli.doctor import checks
from reattach.core.ids import digest
from reattach.core.settings import Settings
from reattach.store import Store
from reattach.store.scripts import lua_folder

from ..store.test_declared_keys import whole_life
from ..support.admin import Admin
from ..support.agents import agents, count
from ..support.calls import cancel, ended, new_run_id, new_script, reaches
from ..support.drive import start
from ..support.factories import Replicas, Workers
from ..support.processes import ROOT
from ..support.servers import RedisServer
from ..support.topologies import running_cluster

FILE: Final = ROOT / "deploy" / "redis-acl.conf"
USER, DOCTOR = "reattach", "reattach-doctor"
OUTSIDE: Final = {"select"}
"""Needed where the URL names another database than 0."""
OPERATORS: Final = {"ping", "script|load"}
"""In the store's sources for the doctor only."""
SWALLOWED: Final = {"client|setinfo"}
"""What redis-py sends at every connect and does without; Redis 7.0 does not know it, so the file cannot name it."""


class Guarded(RedisServer):
    """A server with the shipped users; tests look at it as another one."""

    @property
    def url(self) -> str:
        """For the operator."""
        return f"redis://operator:operator@127.0.0.1:{self.port}/0"

    def url_of(self, user: str, *, database: int = 0) -> str:
        """For one of the shipped users."""
        return f"redis://{user}:{password_of(user)}@127.0.0.1:{self.port}/{database}"


def rules(user: str) -> list[str]:
    """What the file says of a user."""
    [found] = [
        words[2:] for line in FILE.read_text("utf-8").splitlines() if (words := shlex.split(line, comments=True))[:2] == ["user", user]
    ]
    return found


def password_of(user: str) -> str:
    """The password that the file tells people to change."""
    [password] = [rule[1:] for rule in rules(user) if rule.startswith(">")]
    return password


def allowed(user: str) -> set[str]:
    """The commands it names."""
    return {rule[1:] for rule in rules(user) if rule.startswith("+")}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    """A running server with the shipped file included in its configuration."""
    options = ("--user", "operator", "on", ">operator", "~*", "&*", "+@all", "--include", str(FILE))
    with ExitStack() as stack:
        server = Guarded(tmp_path / "guarded", persist=True, options=options)
        stack.callback(server.close)
        server.start()
        yield server


def used(admin: Admin) -> set[str]:
    """Every command that ran since the statistics were reset, also inside scripts."""
    stats: dict[str, Any] = admin.info("commandstats")
    return {name.removeprefix("cmdstat_") for name, facts in stats.items() if facts["calls"]}


def denied(admin: Admin) -> set[str]:
    """What a user was refused: commands, and keys as ``key NAME``."""
    log: list[Any] = admin.acl_log()
    return {(e["object"] if e["reason"] == "command" else f"{e['reason']} {e['object']}") for e in log} - SWALLOWED


@pytest.mark.expects_errors("a poisoned entry is reported as one")
async def test_all_of_it_works(guarded: Guarded, settings: Settings, replicas: Replicas, workers: Workers) -> None:
    """API, workers, viewers, sweeps, cancels, vanished scripts: no command and no key is refused to them."""
    settings = msgspec.structs.replace(settings, redis=guarded.url_of(USER), prefix="ra", lease=0.6, shards=2)
    with guarded.admin() as admin:
        service = await replicas(settings)
        await workers(agents, settings)
        marks = str(guarded.folder / "marks")
        run_id = await new_script(service.client, ["effect", marks], ["text", "some words"], ["wait", "approval"], ["pause", 0.2])
        follower = await service.follow(run_id).open()
        await reaches(service.client, run_id, "waiting")
        admin.script_flush()
        given = await service.client.post(f"/agent-runs/{run_id}/inputs", json={"wait_id": "approval_1", "value": True})
        assert given.status_code == 202
        assert (await ended(service.client, run_id))["state"] == "succeeded" and count(marks) == 1
        assert await follower.until_end() == "clean"
        follower.check()
        idle = await new_run_id(service.client, "nobody")
        admin.script_flush()
        assert (await cancel(service.client, idle)).json()["disposition"] == "cancelled_before_effect"
        for path in ("/agent-runs", "/agent-runs?session_id=s&state=running", "/readyz", f"/agent-runs/{run_id}/events"):
            assert (await service.client.get(path)).status_code == 200
        ticket = (await service.client.post(f"/agent-runs/{run_id}/tickets")).json()
        assert (await service.client.get(ticket["url"], headers={"accept": "application/json"})).status_code == 200
        claim = {"agents": ["nobody"], "worker": "shell", "claim_id": "once-0123456789abcdef", "wait": 0}
        assert (await service.client.post("/worker/claims", json=claim)).status_code == 204
        await service.store.handouts.forget(digest("once"))
        await whole_life(service.store)
        admin.script_flush()
        await service.store.sweep.once()
        await service.store.sweep.readers.tidy(["support"], idle_ms=0)
        assert denied(admin) == set()


async def test_the_doctor_has_a_user_of_its_own(guarded: Guarded) -> None:
    """It finds nothing to complain of, uses all that it may, and may read no run."""
    with guarded.admin() as admin:
        admin.config_resetstat()
        found = {check.name: check async for check in checks(Settings(redis=guarded.url_of(DOCTOR)))}
        assert {name: check.found for name, check in found.items() if check.verdict != "ok"} == {}
        assert denied(admin) == set()
        assert allowed(DOCTOR) - used(admin) - OUTSIDE == set(), "allowed although nothing uses it"


def test_nothing_else_is_reachable(guarded: Guarded) -> None:
    """Other prefixes, dangerous commands, and connections without a password are refused."""
    with guarded.admin() as admin:
        for command in (["HGET", "other", "state"], ["KEYS", "*"], ["FLUSHALL"], ["CONFIG", "GET", "requirepass"], ["ACL", "LIST"]):
            for user in (USER, DOCTOR):
                if (user, command[0]) != (DOCTOR, "CONFIG"):
                    assert admin.acl_dryrun(user, *command) != b"OK", (user, command)
        assert admin.acl_dryrun(DOCTOR, "HGET", "ra:{00}:run:run_x", "state") != b"OK"
        assert [line for line in map(str, admin.acl_list()) if "user default off" in line]


async def test_another_database(guarded: Guarded) -> None:
    """A URL may name one."""
    store = await Store.open(Settings(redis=guarded.url_of(USER, database=3)))
    await store.close()
    with guarded.admin() as admin:
        assert denied(admin) == set()


async def test_a_cluster_needs_two_more(tmp_path: Path) -> None:
    """The commands that the file names for clusters are those that a client of one needs."""
    [more] = re.findall(r"(?m)^# .*cluster.*: ((?:\+[a-z|]+ ?)+)$", FILE.read_text("utf-8"))
    with running_cluster(tmp_path) as cluster:
        for node in cluster.nodes:
            with node.admin() as admin:
                admin.execute_command("ACL", "SETUSER", USER, "on", *rules(USER), *more.split())
                admin.config_resetstat()
        url = cluster.url.replace("://", f"://{USER}:{password_of(USER)}@")
        store = await Store.open(Settings(redis=url))
        hand = await start(store)
        await hand.emit(("step.done", {"n": 1}))
        await hand.finish()
        await store.close()
        seen = set[str]()
        for node in cluster.nodes:
            with node.admin() as admin:
                assert denied(admin) == set()
                seen |= used(admin)
        assert {rule[1:] for rule in more.split()} <= seen


_SUBCOMMANDS: Final = r"CREATE|CONSUMERS|DELCONSUMER"


def named_in_sources() -> set[str]:
    """Every command that a script or the store's Python calls, also on branches that no test takes."""
    scripts = (path.read_text("utf-8") for path in lua_folder().rglob("*.lua"))
    modules = (path.read_text("utf-8") for path in (ROOT / "service" / "reattach" / "store").rglob("*.py"))
    found = [pair for text in scripts for pair in re.findall(rf"redis\.call\('(\w+)'(?:,\s*'({_SUBCOMMANDS})')?", text)]
    calls = rf'(?:\.call|\.once|\.read|execute_command)\(\s*"([A-Z]{{3,}}(?: [A-Z]+)?)"(?:,\s*"({_SUBCOMMANDS})")?'
    found += [pair for text in modules for pair in re.findall(calls, text)]
    return {f"{command}|{sub}".lower() if sub else command.lower().replace(" ", "|") for command, sub in found}


def test_the_file_names_what_the_sources_name() -> None:
    """No command too few, and none too many."""
    assert named_in_sources() - OPERATORS - allowed(USER) == set(), "add it to deploy/redis-acl.conf"
    assert allowed(USER) - named_in_sources() - OUTSIDE == set(), "nothing uses it any more"

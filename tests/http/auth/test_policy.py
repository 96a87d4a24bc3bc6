"""Reattach's own policy: the table, scopes by path segment, and what creation refuses so that no path can mean two things."""

from typing import Any, get_args

import pytest

from reattach.core.run import RunRecord
from reattach.http.auth import POLICY, Action, Authorizer, DevelopmentAuthorizer, OwnPolicy, Principal, permitted
from reattach.http.auth.scopes import ACTIONS, beneath, granted, is_path, parse

from ...support.factories import Replicas
from .people import Believed, Person


def run(initiator: str = "ann", scope: str = "acme/tickets/9", run_id: str = "run_1") -> RunRecord:
    """A run of acme's."""
    return RunRecord(
        run_id=run_id, tenant="acme", initiator=initiator, agent="support", resource_scope=scope, release_id="r", state="running",
        sequence=1, created_at=0, last_activity_at=0,
    )  # fmt: skip


def person(subject: str = "ann", *scopes: str, run_id: str | None = None) -> Principal:
    """Somebody of acme."""
    return Principal(tenant="acme", subject=subject, scopes=frozenset(scopes), run_id=run_id)


def test_every_action_is_decided() -> None:
    """No action is added without a row; every scope's action is one that exists."""
    assert set(POLICY) == set(get_args(Action))
    assert set(get_args(Action)) - {"limits"} <= ACTIONS


@pytest.mark.parametrize("action", get_args(Action))
@pytest.mark.parametrize(
    ("who", "allowed"),
    [
        (person("ann"), {"everybody", "initiator"}),
        (person("bob"), {"everybody"}),
        (person("bob", "{action}"), {"everybody", "initiator", "scope"}),
        (person("bob", "*"), {"everybody", "initiator", "scope"}),
        (person("bob", "{action}:acme/tickets"), {"everybody", "initiator", "scope"}),
        (person("bob", "{action}:acme/tickets/9"), {"everybody", "initiator", "scope"}),
        (person("bob", "*:acme/tickets"), {"everybody", "initiator", "scope"}),
        (person("bob", "{action}:acme/ticket", "{action}:acme/tickets/9/a", "{action}:acme/tickets/99"), {"everybody"}),
        (person("bob", "{action}:", "{action}:/", "{action}:acme/", "{action}:acme//tickets", "{action}:acme/./tickets"), {"everybody"}),
        (person("bob", "{action}:acme/tickets/x/..", "{action}:acme%2Ftickets", "{action}:ACME/tickets", "{ACTION}"), {"everybody"}),
        (person("bob", "{action} ", "x{action}", "{action}s", "sudo", "", ":acme/tickets"), {"everybody"}),
    ],
)
async def test_the_table(action: Action, who: Principal, allowed: set[str]) -> None:
    """Who started the run, whoever has a scope that covers it, nobody else; a scope that is none gives nothing."""
    scopes = {s.replace("{action}", action).replace("{ACTION}", action.upper()) for s in who.scopes}
    who = Principal(tenant="acme", subject=who.subject, scopes=frozenset(scopes))
    may = await OwnPolicy().may(who, action, run())
    if action == "create" and any(s.startswith(("create:acme/ticket", "*:")) for s in scopes):
        # Whoever has a path to create in creates there only.
        assert may == ({"create:acme/tickets", "create:acme/tickets/9", "*:acme/tickets"} & scopes != set())
    else:
        assert may == (POLICY[action] in allowed)


@pytest.mark.parametrize("policy", [OwnPolicy(), DevelopmentAuthorizer()])
async def test_a_ticket_reads_one_run(policy: Authorizer) -> None:
    """Nothing else, whatever the scopes of its maker and whoever decides."""
    ticket = person("ann", "*", run_id="run_1")
    assert await permitted(policy, ticket, "read", run())
    assert not await permitted(policy, ticket, "read", run(run_id="run_2"))
    for action in get_args(Action):
        assert action == "read" or not await permitted(policy, ticket, action, run())
        assert not await permitted(policy, ticket, action, None)


async def test_a_ticket_is_worth_what_its_maker_may() -> None:
    """No more."""
    assert not await permitted(OwnPolicy(), person("bob", run_id="run_1"), "read", run())


async def test_without_a_run() -> None:
    """Asking for work needs the scope for some work at least."""
    policy = OwnPolicy()
    assert await policy.may(person("bob"), "list", None) and await policy.may(person("bob"), "limits", None)
    assert not await policy.may(person("bob"), "work", None) and not await policy.may(person("bob", "read"), "work", None)
    assert await policy.may(person("bob", "work:acme/tickets"), "work", None)


@pytest.mark.parametrize(
    ("who", "scope", "seen"),
    [
        (person("ann"), "acme/tickets/9/notes", True),
        (person("ann"), "acme/tickets/99", False),
        (person("ann"), "acme/payroll", False),
        (person("ann", "read:acme/payroll"), "acme/payroll/7", True),
        (person("bob", "read:acme/tickets"), "acme/payroll", False),
        (person("bob", "read:acme/tickets"), "acme/tickets/10", True),
        (person("bob", "read"), "acme/payroll", True),
        (person("bob", "read"), "elsewhere/x", True),
        (person("bob", "work"), "acme/tickets/9", False),
    ],
)
async def test_events_about_something_else(who: Principal, scope: str, seen: bool) -> None:
    """Having started the run helps within its own scope only."""
    assert await OwnPolicy().may_see(who, run(), scope) is seen


@pytest.mark.parametrize(
    ("path", "above", "inside"),
    [("a", "a", True), ("a/b", "a", True), ("a/b/c", "a/b", True), ("ab", "a", False), ("a", "a/b", False), ("a/bc", "a/b", False)],
)
def test_paths_are_compared_by_segment(path: str, above: str, inside: bool) -> None:
    """Never as text."""
    assert beneath(path, above) is inside
    assert granted({f"read:{above}"}, "read", path) is inside


@pytest.mark.parametrize(
    "text", ["", "/", "a/", "/a", "a//b", "a/.", "./a", "a/../b", "..", "a%2fb", "a\\b", "a b", "a\n", "ä", "a/" * 16 + "a"]
)
def test_what_is_no_path(text: str) -> None:
    """Nothing that somebody could read in two ways."""
    assert not is_path(text) and parse(f"read:{text}") is None


def test_what_is_a_path() -> None:
    """Dots inside a name are a name."""
    assert all(map(is_path, ["a", "a/b", "...", "a/.b", "a/b.", "a/..b", "/".join("a" * 16)]))


@pytest.mark.parametrize(
    "scope",
    ["other/tickets", "acme2", "Acme/tickets", "acme/../other", "acme/./x", "acme//x", "acme/", "/acme", "acme%2Fx", "..", "acme/x/.."],
)
async def test_a_run_is_about_something_of_its_own_tenant(replicas: Replicas, scope: str) -> None:
    """A scope that begins with another tenant, or could be read in two ways, is refused with what is allowed."""
    ann = Person((await replicas(authenticator=Believed(), authorizer=OwnPolicy())).client, "acme/ann create")
    answer = await ann.ask("POST", "/agent-runs", {"agent": "support", "input": {}, "resource_scope": scope})
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "invalid_request", "resource_scope")
    assert "tenant" in answer.json()["detail"]


async def test_three_people_of_two_tenants(replicas: Replicas) -> None:
    """Who started it, a colleague with and without a scope, and a stranger, on the real service."""
    service = await replicas(authenticator=Believed(), authorizer=OwnPolicy())
    ann, bob, eve = (Person(service.client, who) for who in ("acme/ann", "acme/bob", "evil/eve *"))
    chief = Person(service.client, "acme/chief read:acme/tickets cancel:acme/tickets")
    run_id = await ann.create(resource_scope="acme/tickets/9")
    other = await ann.create(resource_scope="acme/tickets-private")
    assert await ann.code("GET", f"/agent-runs/{run_id}") == "200"
    assert await bob.code("GET", f"/agent-runs/{run_id}") == "forbidden"
    assert await eve.code("GET", f"/agent-runs/{run_id}") == "run_not_found"
    assert await chief.code("GET", f"/agent-runs/{run_id}/events", accept="application/json") == "200"
    assert await chief.code("GET", f"/agent-runs/{other}/events", accept="application/json") == "forbidden"
    assert await chief.code("POST", f"/agent-runs/{other}/cancel", {}) == "forbidden"
    assert await chief.code("POST", f"/agent-runs/{run_id}/inputs", {"wait_id": "w", "value": 1}) == "forbidden"
    assert await bob.code("POST", f"/agent-runs/{run_id}/cancel", {}) == "forbidden"
    assert await eve.code("POST", f"/agent-runs/{run_id}/cancel", {}) == "run_not_found"
    assert await ann.code("POST", "/worker/claims", {"agents": ["support"], "worker": "w", "wait": 0}) == "forbidden"
    for reader, seen in ((ann, {run_id, other}), (chief, {run_id}), (bob, set[str]()), (eve, set[str]())):
        assert {run["run_id"] for run in (await reader.ask("GET", "/agent-runs")).json()["runs"]} == seen
    assert await chief.code("POST", f"/agent-runs/{run_id}/cancel", {}) == "200"


async def test_whoever_has_a_place_creates_there(replicas: Replicas) -> None:
    """With a path in a create scope no other scope can be chosen; a run about nothing but itself can always be made."""
    service = await replicas(authenticator=Believed(), authorizer=OwnPolicy())
    bot = Person(service.client, "acme/bot create:acme/tickets")
    await bot.create(resource_scope="acme/tickets/7")
    await bot.create()
    for scope in ("acme", "acme/tickets2", "acme/payroll"):
        body: dict[str, Any] = {"agent": "support", "input": {}, "resource_scope": scope}
        assert await bot.code("POST", "/agent-runs", body) == "forbidden"
    await Person(service.client, "acme/bot create create:acme/tickets").create(resource_scope="acme/payroll")

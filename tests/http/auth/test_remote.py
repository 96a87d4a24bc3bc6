"""A policy at an address, and one of the operator's own class."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from reattach.core.errors import AuthUnavailable, InvalidRequest
from reattach.core.settings import Settings
from reattach.http.auth import DevelopmentAuthorizer, Principal
from reattach.http.auth.policies import load_policy, open_policy
from reattach.http.auth.remote import AT_ONCE, MAX_ANSWER, RemotePolicy
from reattach.store import Store

from ...support import drive
from ...support.factories import Replicas
from ...support.waiting import wait_until
from .people import Believed, Person

ANN = Principal(tenant="acme", subject="ann", scopes=frozenset({"read:acme/x", "cancel"}))


class Judge:
    """A policy service: what it was asked, and what it says.

    Attributes:
        url: Where it is asked.
        asked: The questions.
        headers: Their headers.
        allow: What it says.
        answer: What it says instead.
        busiest: Most questions it had at once.
    """

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.allow: Callable[[dict[str, Any]], bool] = lambda question: True
        self.answer: Callable[[], Response] | None = None
        self.go = asyncio.Event()
        self.go.set()
        self.busy = self.busiest = 0

    async def decide(self, request: Request) -> Response:
        """Answer a question."""
        question = json.loads(await request.body())
        self.asked.append(question)
        self.headers.append(dict(request.headers))
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            await self.go.wait()
        finally:
            self.busy -= 1
        return self.answer() if self.answer is not None else JSONResponse({"allow": self.allow(question), "because": "of it"})


@pytest.fixture
async def judge(task_guard: None) -> AsyncIterator[Judge]:
    """A real HTTP server that decides."""
    judge = Judge()
    app = Starlette(routes=[Route("/", judge.decide, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off"))
    task = asyncio.create_task(server.serve(), name="policy server")
    await wait_until(lambda: server.started, "the policy server")
    port = server.servers[0].sockets[0].getsockname()[1]
    judge.url = f"http://127.0.0.1:{port}/"
    yield judge
    judge.go.set()
    server.should_exit = True
    await task


Remote = Callable[..., RemotePolicy]


@pytest.fixture
async def remote(judge: Judge) -> AsyncIterator[Remote]:
    """Make policies that ask the judge."""
    made: list[RemotePolicy] = []

    def make(**options: Any) -> RemotePolicy:
        made.append(RemotePolicy(judge.url, **{"timeout": 2.0, "keep": 0.0, **options}))
        return made[-1]

    yield make
    for policy in made:
        await policy.close()


async def test_it_is_asked_with_all_it_needs(judge: Judge, replicas: Replicas, remote: Remote) -> None:
    """Who, what, and the run as it is or would be; never a token, an input or a key."""
    service = await replicas(authenticator=Believed(), authorizer=remote())
    ann = Person(service.client, "acme/ann read:acme/x cancel")
    run_id = await ann.create(agent="refund", session_id="s-1", resource_scope="acme/x/1", input={"secret": 1})
    await ann.ask("GET", f"/agent-runs/{run_id}")
    await ann.ask("GET", "/limits")
    who = {"tenant": "acme", "subject": "ann", "scopes": ["cancel", "read:acme/x"], "ticket": False}
    about = {
        "run_id": "", "tenant": "acme", "initiator": "ann", "agent": "refund", "session_id": "s-1", "parent_run_id": None,
        "resource_scope": "acme/x/1", "release_id": "", "state": "queued",
    }  # fmt: skip
    assert judge.asked[0] == {"principal": who, "action": "create", "resource_scope": "acme/x/1", "run": about}
    there = {**about, "run_id": run_id, "release_id": "unreleased"}
    assert judge.asked[1] == {"principal": who, "action": "read", "resource_scope": "acme/x/1", "run": there}
    assert judge.asked[2] == {"principal": who, "action": "limits", "resource_scope": None, "run": None}


async def test_what_it_refuses_is_forbidden(judge: Judge, replicas: Replicas, remote: Remote) -> None:
    """Another tenant's run it is never asked about; a listing shows what it allows."""
    service = await replicas(authenticator=Believed(), authorizer=remote())
    ann, eve = Person(service.client, "acme/ann"), Person(service.client, "evil/eve")
    seen, unseen = await ann.create(resource_scope="acme/a"), await ann.create(resource_scope="acme/b")
    judge.allow = lambda question: question["resource_scope"] != "acme/b"
    assert await ann.code("GET", f"/agent-runs/{unseen}") == "forbidden"
    assert [run["run_id"] for run in (await ann.ask("GET", "/agent-runs")).json()["runs"]] == [seen]
    before = len(judge.asked)
    assert await eve.code("GET", f"/agent-runs/{seen}") == "run_not_found"
    assert len(judge.asked) == before


@pytest.mark.parametrize(
    "answer",
    [
        lambda: Response('{"allow":true}', 500), lambda: Response('{"allow":true}', 201), lambda: Response('{"allow":true}', 403),
        lambda: RedirectResponse("/elsewhere", 307), lambda: Response(""), lambda: Response("yes"), lambda: Response("true"),
        lambda: Response('{"allow":"true"}'), lambda: Response('{"allow":1}'), lambda: Response('{"allow":null}'), lambda: Response("{}"),
        lambda: Response('{"allow":true'), lambda: Response(b"\xff"),
        lambda: Response('{"allow":true,"x":"' + "x" * MAX_ANSWER + '"}'),
    ],
)  # fmt: skip
async def test_anything_but_a_clear_answer_is_none(judge: Judge, remote: Remote, answer: Callable[[], Response]) -> None:
    """It fails closed."""
    judge.answer = answer
    with pytest.raises(AuthUnavailable) as caught:
        await remote().may(ANN, "list", None)
    assert caught.value.retry_after


async def test_nobody_is_let_in_while_it_is_away(judge: Judge, replicas: Replicas, remote: Remote) -> None:
    """A typed 503 with Retry-After for everything, told once in the log; and it goes on by itself."""
    service = await replicas(authenticator=Believed(), authorizer=remote(timeout=0.3))
    ann = Person(service.client, "acme/ann")
    judge.go.clear()
    with structlog.testing.capture_logs() as logs:
        asked: list[tuple[str, str, Any]] = [
            ("GET", "/agent-runs", None),
            ("POST", "/agent-runs", {"agent": "a", "input": {}}),
            ("GET", "/limits", None),
        ]
        for method, path, body in asked:
            answer = await ann.ask(method, path, body)
            assert (answer.status_code, answer.json()["code"]) == (503, "auth_unavailable") and int(answer.headers["retry-after"]) >= 1
        judge.go.set()
        assert await ann.code("GET", "/limits") == "200"
    told = [entry["event"] for entry in logs if entry["event"].startswith("auth.policy")]
    assert told == ["auth.policy_unavailable", "auth.policy_available"]
    assert judge.url not in str(logs)


async def test_a_stream_survives_a_moment_without_an_answer(judge: Judge, replicas: Replicas, remote: Remote, store: Store) -> None:
    """Nobody reads on for longer than a keep-alive interval on an old answer; whoever is cut goes on where they were."""
    service = await replicas(authenticator=Believed(), authorizer=remote(), keepalive=1.0)
    hand = await drive.start(store, tenant="acme", initiator="ann")
    ann = await service.follow(hand.run_id, headers={"x-who": "acme/ann"}).open()
    await ann.until(2)
    judge.answer, before = lambda: Response("", 500), len(judge.asked)
    await wait_until(lambda: len(judge.asked) > before, "it to be asked again")
    judge.answer = None
    await hand.emit(("step.done", {"n": 1}))
    await ann.until(3)
    assert ann.stream.ended is None
    judge.answer = lambda: Response("", 500)
    assert await ann.until_end(timeout=1.5) == "cut"
    assert json.loads(ann.control[-1].data) == {"reason": "unavailable"}
    await ann.open()
    assert (ann.stream.status, ann.stream.problem()["code"]) == (503, "auth_unavailable")
    judge.answer = None
    await hand.finish()
    assert await (await ann.open()).until_end() == "clean"
    ann.check(1, 4)


async def test_answers_count_for_a_moment(judge: Judge, remote: Remote) -> None:
    """The same question is asked once, then again when its answer is old; other people and other actions are other questions."""
    policy = remote(keep=0.3)
    judge.allow = lambda question: question["principal"]["subject"] == "ann"
    bob = Principal(tenant="acme", subject="bob")
    for _ in range(3):
        assert await policy.may(ANN, "list", None) and not await policy.may(bob, "list", None)
    assert len(judge.asked) == 2
    assert await policy.may(ANN, "limits", None)
    assert len(judge.asked) == 3
    judge.allow = lambda question: False

    async def refused() -> bool:
        return not await policy.may(ANN, "list", None)

    await wait_until(refused, "the new answer", timeout=1)


async def test_many_who_ask_the_same_share_the_answer(judge: Judge, remote: Remote) -> None:
    """Whoever leaves takes it from nobody; and never more than a few questions are out at once."""
    policy = remote(keep=60.0, timeout=20.0)
    judge.go.clear()
    same = [asyncio.create_task(policy.may(ANN, "list", None)) for _ in range(50)]
    others = [asyncio.create_task(policy.may(Principal(tenant="acme", subject=f"p{n}"), "list", None)) for n in range(2 * AT_ONCE)]
    await wait_until(lambda: judge.busy == AT_ONCE, "as many questions as may be out")
    same[0].cancel()
    judge.go.set()
    assert all(await asyncio.gather(*same[1:], *others))
    assert (len(judge.asked), judge.busiest) == (1 + 2 * AT_ONCE, AT_ONCE)


@pytest.mark.parametrize(
    "url", ["http://policy.example/", "ftp://x/", "https://", "http://127.0.0.1.evil.example/", "https://[::1", "https://x:99999/", "://"]
)
async def test_what_may_not_decide(url: str) -> None:
    """An address that anybody on the way could answer for."""
    with pytest.raises(InvalidRequest, match="policy"):
        RemotePolicy(url, timeout=1, keep=1)


async def test_a_password_in_the_address_is_sent_and_told_to_nobody(judge: Judge, remote: Remote) -> None:
    """As basic authentication."""
    policy = RemotePolicy(judge.url.replace("//", "//us:s3cret-word@"), timeout=1, keep=0)
    judge.answer = lambda: Response("", 401)
    with structlog.testing.capture_logs() as logs, pytest.raises(AuthUnavailable) as caught:
        await policy.may(ANN, "list", None)
    await policy.close()
    assert judge.headers[0]["authorization"].startswith("Basic ")
    assert "s3cret-word" not in str(logs) + caught.value.detail


POLICY = """
class Policy:
    async def may(self, principal, action, record):
        return principal.subject == "ann"

class Fails:
    def __init__(self):
        raise RuntimeError("no database")

ready = Policy()
number = 7
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the operator's in the current folder."""
    name = f"access_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    return name


async def test_a_class_of_ones_own(module: str, replicas: Replicas) -> None:
    """Named by MODULE:CLASS, or an object that is there already."""
    for name in ("Policy", "ready"):
        async with open_policy(Settings(policy=f"{module}:{name}"), DevelopmentAuthorizer()) as policy:
            service = await replicas(authenticator=Believed(), authorizer=policy)
            assert await Person(service.client, "acme/ann").code("GET", "/agent-runs") == "200"
            assert await Person(service.client, "acme/bob").code("GET", "/agent-runs") == "forbidden"


@pytest.mark.parametrize("name", ["Fails", "number", "missing", "", "a b"])
def test_what_is_no_policy(module: str, name: str) -> None:
    """Said in words at start."""
    with pytest.raises(InvalidRequest) as caught:
        load_policy(f"{module}:{name}")
    assert caught.value.extra == {"field": "policy"}


async def test_without_a_setting_the_default_decides() -> None:
    """Whatever that is."""
    otherwise = DevelopmentAuthorizer()
    async with open_policy(Settings(), otherwise) as policy:
        assert policy is otherwise

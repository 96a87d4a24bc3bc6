"""Events about something that their reader may not read: same place, same id, no payload; on every way out and in the snapshot."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from reattach.core.errors import AuthUnavailable
from reattach.core.event import Draft
from reattach.core.run import RunRecord
from reattach.http.auth import OwnPolicy, Principal
from reattach.store import Store

from ...support import drive
from ...support.factories import Replicas
from ...support.service import Service
from ...support.waiting import wait_until
from .people import Believed, Person

ANN, CHIEF, CLERK = "acme/ann", "acme/chief read", "acme/clerk read:acme/tickets"
SECRET = "30 000 EUR a month"
PAYROLL = "acme/payroll/7"


async def serve(replicas: Replicas, **options: Any) -> Service:
    """A replica with the own policy, or another."""
    return await replicas(authenticator=Believed(), **{"authorizer": OwnPolicy(), **options})


async def secretive(store: Store, **facts: Any) -> drive.Hand:
    """A run of ann's about a ticket that says something about the payroll too."""
    hand = await drive.start(store, tenant="acme", initiator="ann", resource_scope="acme/tickets/9", **facts)
    await hand.emit(("step.done", {"n": 1}))
    await whisper(hand, ("salary.found", {"text": SECRET}), ("message.completed", message("m1", SECRET)))
    await hand.emit(("message.completed", message("m2", "all is well")))
    return hand


def message(name: str, text: str) -> dict[str, Any]:
    """A completed message."""
    return {"message_id": name, "role": "assistant", "content": [{"type": "text", "text": text}]}


async def whisper(hand: drive.Hand, *drafts: tuple[str, Any], scope: str = PAYROLL) -> None:
    """Append events about something else."""
    hand.batch += 1
    await hand.store.work.append(hand.lease, hand.batch, [Draft(kind, drive.raw(payload), scope) for kind, payload in drafts])


async def everything(service: Service, who: str, run_id: str) -> str:
    """All that somebody can read of a run, as text: stream, page, snapshot, cancel."""
    person = Person(service.client, who)
    follower = service.follow(run_id, headers=person.headers)
    await (await follower.open()).until_end()
    page = await person.ask("GET", f"/agent-runs/{run_id}/events", accept="application/json")
    shown = await person.ask("GET", f"/agent-runs/{run_id}")
    listed = await person.ask("GET", "/agent-runs")
    stopped = await Person(service.client, who + " cancel").ask("POST", f"/agent-runs/{run_id}/cancel", {})
    assert {page.status_code, shown.status_code, listed.status_code, stopped.status_code} == {200}
    assert [event["payload"] for event in follower.events] == [event["payload"] for event in page.json()["events"]]
    follower.check(1, page.json()["latest_sequence"])
    return bytes(follower.stream.raw).decode() + page.text + shown.text + listed.text + stopped.text


async def test_who_may_not_read_it_gets_everything_but_the_payload(replicas: Replicas, store: Store) -> None:
    """Whoever started the run included; on the stream, on pages, in the snapshot and in the answer to a cancel."""
    service = await serve(replicas)
    hand = await secretive(store)
    await hand.finish()
    for who in (ANN, CLERK):
        told = await everything(service, who, hand.run_id)
        assert SECRET not in told and '"payload":{"redacted":true}' in told and "all is well" in told
        assert f'"resource_scope":"{PAYROLL}"' in told
    assert (await everything(service, CHIEF, hand.run_id)).count(SECRET) == 5
    assert (await everything(service, ANN + " read:acme/payroll", hand.run_id)).count(SECRET) == 5


async def test_the_snapshot_is_the_fold_of_what_its_reader_was_shown(replicas: Replicas, store: Store) -> None:
    """Messages, tools and resources of what was redacted are not in it; also where it begins a stream, and when the log is gone."""
    service = await serve(replicas)
    hand = await secretive(store, retention=drive.new_run().retention)
    call = {"tool_call_id": "c1", "tool": "payroll.raise", "result_version": "payroll_7:v2", "result": SECRET}
    await whisper(
        hand, ("tool.requested", {"tool_call_id": "c1", "tool": "payroll.raise", "arguments": {"to": SECRET}}), ("tool.completed", call)
    )
    await whisper(hand, ("tool.unresolved", {"tool_call_id": "c2", "tool": "payroll.look", "why": SECRET}))
    ann, chief = Person(service.client, ANN), Person(service.client, CHIEF)
    for _ in range(2):
        seen = (await ann.ask("GET", f"/agent-runs/{hand.run_id}")).json()
        assert [m["message_id"] for m in seen["messages"]] == ["m2"]
        assert (seen["tools"], seen["resources"], seen["unresolved"]) == ([], {}, [])
        whole = (await chief.ask("GET", f"/agent-runs/{hand.run_id}")).json()
        assert [m["message_id"] for m in whole["messages"]] == ["m1", "m2"]
        assert (whole["resources"], [t["tool_call_id"] for t in whole["tools"]]) == ({"payroll_7": "v2"}, ["c1", "c2"])
        assert len(whole["unresolved"]) == 1 and seen["sequence"] == whole["sequence"]
        if seen["state"] != "succeeded":
            await hand.finish()
            # A fold that was stored and read again, in a process that has never seen the events.
            await store.checkpoints.fold(hand.run_id)
            await store.door.call("DEL", store.keys.log(hand.run_id), store.keys.audit(hand.run_id))
            service = await serve(replicas)
            ann, chief = Person(service.client, ANN), Person(service.client, CHIEF)
    follower = service.follow(hand.run_id, headers=ann.headers)
    follower.streams.clear()
    answer = await ann.ask("GET", f"/agent-runs/{hand.run_id}/events?expired=snapshot", accept="text/event-stream")
    assert answer.status_code == 200 and "run.snapshot" in answer.text and SECRET not in answer.text and "all is well" in answer.text


async def test_a_message_with_one_secret_part_is_not_shown(replicas: Replicas, store: Store) -> None:
    """What of it came from other events is not kept apart."""
    service = await serve(replicas)
    hand = await drive.start(store, tenant="acme", initiator="ann", resource_scope="acme/tickets/9")
    await hand.emit(("message.started", {"message_id": "m"}), ("message.delta", {"message_id": "m", "text": "pay: "}))
    await whisper(hand, ("message.delta", {"message_id": "m", "text": SECRET}))
    shown = await Person(service.client, ANN).ask("GET", f"/agent-runs/{hand.run_id}")
    assert shown.json()["messages"] == []
    await hand.finish()


async def test_the_runs_own_scope_and_what_lies_beneath(replicas: Replicas, store: Store) -> None:
    """Nothing is redacted there for whoever started the run, also where the worker names the scope itself."""
    service = await serve(replicas)
    hand = await drive.start(store, tenant="acme", initiator="ann", resource_scope="acme/tickets/9")
    for scope in ("acme/tickets/9", "acme/tickets/9/notes", "acme/tickets/91"):
        await whisper(hand, ("note.made", {"in": scope}), scope=scope)
    await hand.finish()
    page = await Person(service.client, ANN).ask("GET", f"/agent-runs/{hand.run_id}/events", accept="application/json")
    payloads = [event["payload"] for event in page.json()["events"] if event["type"] == "note.made"]
    assert payloads == [{"in": "acme/tickets/9"}, {"in": "acme/tickets/9/notes"}, {"redacted": True}]


class Asked(OwnPolicy):
    """The own policy; what may be seen is decided by the test, and takes as long as it wants."""

    def __init__(self) -> None:
        self.answers: dict[str, bool] = {}
        self.asked: list[str] = []
        self.go = asyncio.Event()
        self.go.set()
        self.fails = False

    async def may_see(self, principal: Principal, record: RunRecord, scope: str) -> bool:
        """As the test says."""
        self.asked.append(f"{principal.subject} {scope}")
        await self.go.wait()
        if self.fails:
            raise AuthUnavailable()
        return self.answers.get(scope, False)


async def test_live_events_wait_for_the_answer_in_order(replicas: Replicas, store: Store) -> None:
    """While it is asked nothing comes, not even what needs no answer; then everything comes once and in order."""
    policy = Asked()
    service = await serve(replicas, authorizer=policy)
    hand = await secretive(store)
    ann = await service.follow(hand.run_id, headers={"x-who": ANN}).open()
    await ann.until(6)
    policy.go.clear()
    await whisper(hand, ("salary.found", {"text": SECRET}), scope="acme/payroll/8")
    await hand.emit(("step.done", {"n": 2}))
    await wait_until(lambda: "ann acme/payroll/8" in policy.asked, "the question")
    assert ann.sequences[-1] == 6
    policy.answers["acme/payroll/8"] = True
    policy.go.set()
    await hand.finish()
    assert await ann.until_end() == "clean"
    ann.check(1, 9)
    assert ann.events[3]["payload"] == {"redacted": True}
    assert ann.events[6]["payload"] == {"text": SECRET}


async def test_an_answer_counts_for_a_moment_only(replicas: Replicas, store: Store) -> None:
    """It is asked again within the keep-alive interval, and what was allowed may not be any more, on the same stream."""
    policy = Asked()
    policy.answers[PAYROLL] = True
    service = await serve(replicas, authorizer=policy, keepalive=0.4)
    hand = await secretive(store)
    ann = await service.follow(hand.run_id, headers={"x-who": ANN}).open()
    await ann.until(6)
    policy.answers[PAYROLL] = False

    async def redacted() -> bool:
        await whisper(hand, ("salary.found", {"text": SECRET}))
        return any(event["payload"] == {"redacted": True} for event in ann.events)

    await wait_until(redacted, "the new answer", timeout=2)
    assert policy.asked.count(f"ann {PAYROLL}") <= 10
    await hand.finish()


async def test_without_an_answer_nothing_is_shown_and_nothing_is_lost(replicas: Replicas, store: Store) -> None:
    """Not even redacted, which would be for good: the stream ends, and whoever comes back meanwhile is told to come later."""
    policy = Asked()
    service = await serve(replicas, authorizer=policy)
    hand = await secretive(store)
    policy.fails = True
    ann = service.follow(hand.run_id, headers={"x-who": ANN})
    assert await (await ann.open()).until_end() == "cut"
    assert json.loads(ann.control[-1].data) == {"reason": "unavailable"} and SECRET not in bytes(ann.stream.raw).decode()
    for path in (f"/agent-runs/{hand.run_id}", f"/agent-runs/{hand.run_id}/events"):
        answer = await Person(service.client, ANN).ask("GET", path, accept="application/json")
        assert (answer.status_code, answer.json()["code"]) == (503, "auth_unavailable") and int(answer.headers["retry-after"]) >= 1
    policy.fails = False
    await hand.finish()
    assert await (await ann.open()).until_end() == "clean"
    ann.check(1, 7)


async def test_viewers_who_may_not_see_share_their_bytes(replicas: Replicas, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A redacted piece is made once, however many look at it; who is in doubt about nothing asks about nothing."""
    from reattach.tail.frames import Frame

    made: list[int] = []
    redacted = Frame.redacted

    def counted(self: Frame) -> Frame:
        made.append(self.sequence)
        return redacted(self)

    monkeypatch.setattr(Frame, "redacted", counted)
    policy = Asked()
    service = await serve(replicas, authorizer=policy)
    hand = await drive.start(store, tenant="acme", initiator="ann", resource_scope="acme/tickets/9")
    viewers = [await service.follow(hand.run_id, headers={"x-who": ANN}).open() for _ in range(8)]
    await hand.emit(("step.done", {"n": 1}))
    for viewer in viewers:
        await viewer.until(3)
    assert policy.asked == []
    await whisper(hand, ("salary.found", {"text": SECRET}))
    for viewer in viewers:
        await viewer.until(4)
        assert viewer.events[-1]["payload"] == {"redacted": True}
    assert made == [4]
    await hand.finish()


async def test_a_policy_without_a_rule_for_events_is_asked_about_their_scope(replicas: Replicas, store: Store) -> None:
    """As if the whole run were about it."""

    class ByScope:
        async def may(self, principal: Principal, action: str, record: RunRecord | None) -> bool:
            return record is None or record.resource_scope.startswith("acme/tickets")

    service = await serve(replicas, authorizer=ByScope())
    hand = await secretive(store)
    await hand.finish()
    page: httpx.Response = await Person(service.client, ANN).ask("GET", f"/agent-runs/{hand.run_id}/events", accept="application/json")
    assert [e["payload"] == {"redacted": True} for e in page.json()["events"]] == [False, False, False, True, True, False, False]

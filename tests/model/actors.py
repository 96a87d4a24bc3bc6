"""Who acts on the run: two workers, a canceller, two who answer, sweepers, and the time. Each may be late, dead, or repeat itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from reattach.store.scripts import GROUP

from .world import AGENT, HOUR, PAST, Call, Direct, Facts, World, word


@dataclass(frozen=True)
class Hand:
    """What one worker remembers. It is never told that it lost a lease: it finds out when it tries.

    Attributes:
        name: Its consumer name, and the first part of its fences.
        delivery: The entry it was handed and has not claimed yet.
        fence: Of its last acquisition.
        entry: Of its last acquisition.
        batch: Of the last append it knows to be written.
    """

    name: str
    delivery: str = ""
    fence: str = ""
    entry: str = ""
    batch: int = 0


@dataclass(frozen=True)
class Cast:
    """What everybody remembers; `seen` is the entry that a sweeper read and has not acted on yet."""

    hands: Mapping[str, Hand]
    seen: str | None = None

    def having(self, hand: Hand) -> "Cast":
        """With one hand changed."""
        return replace(self, hands={**self.hands, hand.name: hand})


START: Final = Cast(hands={"a": Hand("a"), "b": Hand("b")})


@dataclass(frozen=True)
class Step:
    """One thing that may happen now.

    Attributes:
        name: For people: who does what.
        act: What is sent to Redis; None where an actor only looks.
        after: What everybody remembers then.
        by: The fence it is done under, empty where none is needed.
    """

    name: str
    act: Call | Direct | None
    after: Callable[[Any, Facts], Cast]
    by: str = ""


def _tool(call: str) -> tuple[bytes, bytes, bytes, bytes]:
    about = b'"tool_call_id":"%b","tool":"t"' % call.encode()
    record = b'{"call_id":"%b","tool":"t","mutating":true}' % call.encode()
    return b'{%b,"arguments":{}}' % about, b'{%b,"why":"worker_lost"}' % about, b"{%b}" % about, record


class Moves:
    """Every step that can be taken from a state, of the kinds a test asks for."""

    def __init__(self, world: World, kinds: str, losses: int) -> None:
        self._losses = losses
        self._id = world.run_id
        self._world = world
        self._kinds = kinds.split()

    def __call__(self, facts: Facts, cast: Cast, depth: int) -> Iterator[Step]:
        """The steps."""
        for kind in self._kinds:
            move = getattr(self, f"_{kind}")
            if kind in _OF_HANDS:
                for hand in cast.hands.values():
                    yield from move(facts, cast, hand, depth)
            else:
                yield from move(facts, cast)

    def _take(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        if hand.delivery or "" not in facts.queue.values() or (hand.fence and hand.fence == facts.text("fence")):
            return
        read = ("XREADGROUP", "GROUP", GROUP, hand.name, "COUNT", 1, "STREAMS", self._world.names["queue"], ">")
        entry = next(e for e, holder in facts.queue.items() if not holder)
        yield Step(f"{hand.name} takes", Direct((read,)), lambda _, __: cast.having(replace(hand, delivery=entry)))

    def _claim(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        if hand.delivery:
            fence = f"{hand.name}{depth}"

            def claimed(reply: Any, _: Facts) -> Cast:
                free = replace(hand, delivery="")
                return cast.having(replace(free, fence=fence, entry=hand.delivery, batch=0) if word(reply) == "OK" else free)

            yield Step(f"{hand.name} claims", self._claiming(hand, hand.delivery, fence), claimed)

    def _look(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        """Claim what waits in the queue without its having been handed out."""
        entry, fence = facts.text("entry"), f"{hand.name}{depth}"
        if entry and facts.text("state") == "queued" and not hand.delivery and not hand.fence:
            owner = replace(hand, fence=fence, entry=entry, batch=0)
            act = self._claiming(hand, entry, fence)
            yield Step(f"{hand.name} looks and claims", act, lambda r, _: cast.having(owner) if word(r) == "OK" else cast)

    def _claiming(self, hand: Hand, entry: str, fence: str) -> Call:
        return Call("claim", (self._id, GROUP, entry, hand.name, fence, HOUR, '"w"', self._losses, HOUR))

    def _again(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        """Late copies of the claim and of the last append, as a resend that was held up on the way."""
        if hand.fence:
            yield self._same(f"{hand.name}'s claim arrives again", self._claiming(hand, hand.entry, hand.fence), cast, hand)
            if hand.batch:
                yield self._same(f"{hand.name}'s append arrives again", self._appending(hand, hand.batch), cast, hand)

    def _same(self, name: str, act: Call, cast: Cast, hand: Hand) -> Step:
        return Step(name, act, lambda _, __: cast, by=hand.fence)

    def _renew(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        if hand.fence:
            yield self._same(f"{hand.name} renews", Call("renew", (self._id, GROUP, hand.entry, hand.name, hand.fence, HOUR)), cast, hand)

    def _appending(self, hand: Hand, batch: int) -> Call:
        return Call("append", (self._id, hand.fence, batch, 0, 0, 0, 0, "step.done", "{}", "", "message.delta", "{}", ""))

    def _append(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        if hand.fence:
            taken = cast.having(replace(hand, batch=hand.batch + 1))
            act = self._appending(hand, hand.batch + 1)
            yield Step(f"{hand.name} appends", act, lambda r, _: taken if word(r) in ("OK", "SEEN") else cast, by=hand.fence)

    def _intend(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        if hand.fence:
            requested, unresolved, _, record = _tool("call_1")
            act = Call("intend", (self._id, hand.fence, "call_1", 0, 0, 0, requested, unresolved, record))
            yield self._same(f"{hand.name} intends", act, cast, hand)

    def _commit(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        if hand.fence:
            yield self._committing(cast, hand, "receipt", "tool.completed")

    def _doubt(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        """The call failed, or its owner itself cannot tell what became of it, e.g. after a timeout."""
        if hand.fence:
            yield self._committing(cast, hand, "failed", "tool.failed")
            yield self._committing(cast, hand, "unresolved", "tool.unresolved")

    def _committing(self, cast: Cast, hand: Hand, status: str, kind: str) -> Step:
        about, record = _tool("call_1")[2:]
        act = Call("commit", (self._id, hand.fence, "call_1", status, kind, about, record, 1))
        return self._same(f"{hand.name} commits {status}", act, cast, hand)

    def _park(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        if hand.fence:
            for mode in ("fail", "resume"):
                payload = '{"wait_id":"w1","reason":"go"}'
                act = Call("park", (self._id, GROUP, hand.fence, "w1", mode, HOUR, payload))
                yield self._same(f"{hand.name} parks ({mode})", act, cast, hand)

    def _finish(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        if hand.fence:
            for state in ("succeeded", "cancelled"):
                act = Call("finish", (self._id, GROUP, hand.fence, state, '{"outcome":1}'))
                yield self._same(f"{hand.name} finishes as {state}", act, cast, hand)

    def _release(self, facts: Facts, cast: Cast, hand: Hand, depth: int) -> Iterator[Step]:
        if hand.fence:
            yield self._same(f"{hand.name} releases", Call("release", (self._id, GROUP, AGENT, hand.fence, '"drain"')), cast, hand)

    def _cancel(self, facts: Facts, cast: Cast) -> Iterator[Step]:
        act = Call("cancel", (self._id, GROUP, "key", "print", '{"cancel_version":1,"by":"me"}'))
        yield Step("somebody cancels", act, lambda _, __: cast)

    def _signal(self, facts: Facts, cast: Cast) -> Iterator[Step]:
        for who in ("x", "y"):
            payload = f'{{"input_id":"{who}","wait_id":"w1","by":"{who}","value":1}}'
            act = Call("signal", (self._id, AGENT, "w1", f'"{who}"', f"key-{who}", "print", payload, "1"))
            yield Step(f"{who} answers", act, lambda _, __: cast)

    def _sweep(self, facts: Facts, cast: Cast) -> Iterator[Step]:
        """A sweeper reads what carries the run, and acts on it any time later; idle times have passed by then."""
        current = facts.text("entry")
        if cast.seen is None:
            # At any time: what sent it here may have been settled by another sweeper meanwhile.
            yield Step("a sweeper looks", None, lambda _, __: replace(cast, seen=current))
            return
        act = Call("reclaim", (self._id, GROUP, AGENT, cast.seen, 0))
        yield Step("the sweeper reclaims", act, lambda _, __: replace(cast, seen=None))

    def _timers(self, facts: Facts, cast: Cast) -> Iterator[Step]:
        """Other sweepers, which come for any timer at any time: what is not due must refuse by itself."""
        yield Step("a sweeper expires the wait", Call("expire", (self._id, GROUP, AGENT)), lambda _, __: cast)
        yield Step("a sweeper retries", Call("retry", (self._id, AGENT)), lambda _, __: cast)

    def _time(self, facts: Facts, cast: Cast) -> Iterator[Step]:
        """What has a deadline reaches it: the field and the timer are set to the past, which is what a server that waited would see."""
        fields = {"lease": "lease_until", "wait": "wait_until", "retry": None}
        for kind, field in fields.items():
            if facts.timers.get(kind, PAST) == PAST:
                continue
            commands: list[tuple[Any, ...]] = [("ZADD", self._world.names["timers"], PAST, f"{kind}:{self._id}")]
            if field is not None:
                commands.append(("HSET", self._world.names["run"], field, PAST))
            yield Step(f"the {kind} ends", Direct(tuple(commands)), lambda _, __: cast)


_OF_HANDS: Final = {"take", "claim", "look", "again", "renew", "append", "intend", "commit", "doubt", "park", "finish", "release"}

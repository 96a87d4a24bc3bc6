"""Which event does what to which part of a fold: the table that the browser module has too."""

from collections.abc import Callable
from typing import Final, Literal, TypeVar

import msgspec

from . import event as kinds
from . import projections as p
from .calls import Calls
from .event import Event
from .lifecycle import Lifecycle
from .transcript import Transcript

T = TypeVar("T")


class Parts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The three things a fold consists of."""

    run: Lifecycle
    messages: Transcript
    tools: Calls


Rule = Callable[[Parts, Event], None]


def _if_it_fits(decoder: "msgspec.json.Decoder[T]", act: Callable[[Parts, T, Event], None]) -> Rule:
    """For what handlers may append: a payload that does not fit is not projected."""

    def rule(parts: Parts, event: Event) -> None:
        payload = p.read(decoder, event.payload)
        if payload is not None:
            act(parts, payload, event)

    return rule


def _always(decoder: "msgspec.json.Decoder[T]", empty: T, act: Callable[[Parts, T, Event], None]) -> Rule:
    """For what only the store writes: the type alone decides the state."""

    def rule(parts: Parts, event: Event) -> None:
        act(parts, p.read(decoder, event.payload) or empty, event)

    return rule


def _attempt(act: Callable[[Parts, p.RunAttempt, Event], None]) -> Rule:
    return _always(p.ATTEMPT, p.RunAttempt(), act)


def _ending(act: Callable[[Parts, p.RunEnded, Event], None]) -> Rule:
    def end(parts: Parts, payload: p.RunEnded, event: Event) -> None:
        act(parts, payload, event)
        parts.messages.interrupt()

    return _always(p.ENDED, p.RunEnded(), end)


def _retry(parts: Parts, payload: p.RunAttempt, event: Event) -> None:
    parts.run.retry(payload)
    parts.messages.interrupt()


def _settled(status: Literal["completed", "failed", "unresolved"]) -> Rule:
    return _if_it_fits(p.SETTLED, lambda parts, payload, event: parts.tools.settle(payload, status, event.at))


RULES: Final[dict[str, Rule]] = {
    kinds.RUN_CREATED: lambda parts, event: parts.run.create(event),
    kinds.RUN_STARTED: _attempt(lambda parts, payload, event: parts.run.start(payload, event)),
    kinds.RUN_RESUMED: _attempt(lambda parts, payload, event: parts.run.start(payload, event)),
    kinds.RUN_RETRYING: _attempt(_retry),
    kinds.RUN_WAITING: _always(p.WAITING, p.RunWaiting(), lambda parts, payload, event: parts.run.wait(payload, event)),
    kinds.INPUT_RECEIVED: lambda parts, event: parts.run.answer(),
    kinds.RUN_CANCEL_REQUESTED: _always(
        p.CANCEL_REQUESTED, p.RunCancelRequested(), lambda parts, payload, event: parts.run.request_cancel(payload, event)
    ),
    kinds.RUN_SUCCEEDED: _ending(lambda parts, payload, event: parts.run.succeed(payload, event)),
    kinds.RUN_FAILED: _ending(lambda parts, payload, event: parts.run.fail(payload, event)),
    kinds.RUN_CANCELLED: _ending(lambda parts, payload, event: parts.run.stop(payload, event)),
    kinds.MESSAGE_STARTED: _if_it_fits(p.STARTED, lambda parts, payload, _: parts.messages.start(payload)),
    kinds.MESSAGE_DELTA: _if_it_fits(p.TEXT, lambda parts, payload, event: parts.messages.write(payload, event.sequence)),
    kinds.MESSAGE_CHECKPOINT: _if_it_fits(p.TEXT, lambda parts, payload, _: parts.messages.checkpoint(payload)),
    kinds.MESSAGE_COMPLETED: _if_it_fits(p.COMPLETED, lambda parts, payload, _: parts.messages.complete(payload)),
    kinds.TOOL_REQUESTED: _if_it_fits(p.REQUESTED, lambda parts, payload, event: parts.tools.request(payload, event.at)),
    kinds.TOOL_COMPLETED: _settled("completed"),
    kinds.TOOL_FAILED: _settled("failed"),
    kinds.TOOL_UNRESOLVED: _settled("unresolved"),
}

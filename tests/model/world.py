"""One run in a real Redis that can be put back into any state it was in, so that every next step of every state can be tried."""

from dataclasses import dataclass
from typing import Any

from reattach.core.event import Event
from reattach.store.keys import Keys
from reattach.store.records import pairs, to_event
from reattach.store.scripts import GROUP, Reply, load_scripts

from ..support.admin import Admin

AGENT = "support"
PAST = 1
"""What the model writes where time has passed: one millisecond after the epoch. A real deadline is far above it."""
HOUR = 3_600_000

_OWNED = ("run", "log", "audit", "effects", "queue", "timers")
_OF_SESSION = ("session", "session_log", "open", "lapses")
"""What belongs to a run's state, and to its session's. Bell and wake are hints; the snapshot is not written by any of these commands."""

_RESTORE = """
redis.call('DEL', unpack(KEYS))
for i, dump in ipairs(ARGV) do
  if dump ~= '' then redis.call('RESTORE', KEYS[i], 0, dump) end
end
"""
_LOOK = """
local run, log, audit, effects, queue, timers = unpack(KEYS)
local ttl, dump = {}, {}
for i, key in ipairs(KEYS) do
  ttl[i], dump[i] = redis.call('PTTL', key), redis.call('DUMP', key) or ''
end
return { redis.call('HGETALL', run), redis.call('XRANGE', log, '-', '+'), redis.call('XRANGE', audit, '-', '+'),
  redis.call('HGETALL', effects), redis.call('XRANGE', queue, '-', '+'), redis.call('XPENDING', queue, ARGV[1], '-', '+', 10),
  redis.call('ZRANGE', timers, 0, -1, 'WITHSCORES'), ttl, dump, KEYS[7] and redis.call('HGET', KEYS[7], 'sequence') or '0',
  KEYS[8] and redis.call('XRANGE', KEYS[8], '-', '+') or {}, KEYS[9] and redis.call('ZRANGE', KEYS[9], 0, -1) or {} }
"""
Dumps = tuple[bytes, ...]


@dataclass(frozen=True)
class Call:
    """One of the Lua commands with its arguments."""

    script: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Direct:
    """Plain commands: a worker's ``XREADGROUP``, or the model's own hand moving the time."""

    commands: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Facts:
    """The run as it lies in Redis.

    Attributes:
        record: The hash.
        log: The events.
        audit: The audit stream's (sequence, type).
        effects: The hash.
        queue: Entries of the queue, with the consumer who was handed each, empty for nobody.
        timers: Timer kind → due time.
        expiring: Keys of the run that have an expiry.
        session: Its session's sequence, the (place, first, last) of every entry in its log, and whether the run is listed as open there.
        dumps: Everything, to come back to.
    """

    record: dict[str, bytes]
    log: tuple[Event, ...]
    audit: tuple[tuple[int, str], ...]
    effects: dict[str, bytes]
    queue: dict[str, str]
    timers: dict[str, float]
    expiring: frozenset[str]
    session: tuple[int, tuple[tuple[int, int, int], ...], bool]
    dumps: Dumps

    def text(self, name: str) -> str:
        """One field of the record; empty where it is missing."""
        return self.record.get(name, b"").decode()

    def number(self, name: str) -> int:
        """One field of the record; 0 where it is missing."""
        return int(self.record.get(name) or 0)

    @property
    def state(self) -> str:
        """The record's state."""
        return self.text("state")


class World:
    """The keys of one run, and nobody else's hands on them."""

    def __init__(self, admin: Admin, keys: Keys, run_id: str, session: str | None = None) -> None:
        self.run_id = run_id
        self.names = keys.of_run(run_id, AGENT, session)
        self._admin = admin
        self._scripts = load_scripts()
        self._keys = [str(self.names[name]) for name in (_OWNED if session is None else _OWNED + _OF_SESSION)]
        for script in self._scripts.values():
            admin.script_load(script.text)
        self._restore, self._look = admin.script_load(_RESTORE), admin.script_load(_LOOK)

    def perform(self, dumps: Dumps | None, *acts: Call | Direct) -> tuple[list[Any], Facts]:
        """Go back to a state (or stay), act, and look: all in one round trip.

        Raises:
            AssertionError: The server refused a command: a script that stops half way would leave half a change.
        """
        pipe = self._admin.pipeline(transaction=False)
        if dumps is not None:
            pipe.evalsha(self._restore, len(self._keys), *self._keys, *dumps)
        sizes = [self._send(pipe, act) for act in acts]
        pipe.evalsha(self._look, len(self._keys), *self._keys, GROUP)
        replies: list[Any] = pipe.execute(raise_on_error=False)
        if dumps is not None:
            del replies[0]
        answers: list[Any] = []
        for act, size in zip(acts, sizes, strict=True):
            mine, replies = replies[:size], replies[size:]
            for reply in mine:
                assert not isinstance(reply, Exception), f"{act} was refused by the server: {reply}"
            answers.append(self._scripts[act.script].decode(mine[0]) if isinstance(act, Call) else mine)
        return answers, _facts(replies[0])

    def _send(self, pipe: Any, act: Call | Direct) -> int:
        if isinstance(act, Direct):
            for command in act.commands:
                pipe.execute_command(*command)
            return len(act.commands)
        script = self._scripts[act.script]
        bound = script.bind_keys(self.names)
        pipe.execute_command("EVALSHA", script.sha, len(bound), *bound, *act.args)
        return 1


def _facts(reply: list[Any]) -> Facts:
    record, log, audit, effects, queue, pending, timers, ttls, dumps, sequence, places, opened = reply
    held = {entry.decode(): consumer.decode() for entry, consumer, *_ in pending}
    entries = {entry.decode(): held.pop(entry.decode(), "") for entry, _ in queue}
    assert not held, f"handed out, but not in the queue any more: {held}"
    return Facts(
        record=pairs(record),
        log=tuple(map(to_event, log)),
        audit=tuple((e.sequence, e.type) for e in map(to_event, audit)),
        effects=pairs(effects),
        queue=entries,
        timers={member.partition(":")[0]: float(score) for member, score in pairs(timers).items()},
        expiring=frozenset(name for name, ttl in zip(_OWNED, ttls, strict=False) if ttl > 0),
        session=(int(sequence), tuple((int(i.split(b"-")[0]), int(f[3]), int(f[5])) for i, f in places), bool(opened)),
        dumps=tuple(dumps),
    )


def word(reply: Any) -> str:
    """A script's reply word; empty for plain commands."""
    return reply.word if isinstance(reply, Reply) else ""

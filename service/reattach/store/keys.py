"""Every key name. Nothing else puts one together, and no script does.

All keys of a shard carry its tag in braces, so that they live in one cluster slot: one command can touch a run, its log and its queue, and
one `XREAD` can follow many runs. User text is in a key only as a digest: it cannot steer the slot.
"""

from collections.abc import Sequence
from typing import TypeAlias

from ..core.ids import digest, session_name, shard_for, shard_of

KeyNames: TypeAlias = str | Sequence[str] | None
"""One key, the keys that are a script's rest, or none where a script can do without."""


class Keys:
    """Key names under one prefix."""

    def __init__(self, prefix: str, shards: int) -> None:
        """Fix the prefix (first part of every key) and the number of shards."""
        self.prefix = prefix
        self.shards = shards
        self.tags = tuple(f"{n:02d}" for n in range(shards))

    def config(self) -> str:
        """What every process must agree on."""
        return f"{self.prefix}:config"

    def run(self, run_id: str) -> str:
        """Hash: the record."""
        return f"{self.prefix}:{{{shard_of(run_id)}}}:run:{run_id}"

    def log(self, run_id: str) -> str:
        """Stream: every event."""
        return self.run(run_id) + ":log"

    def audit(self, run_id: str) -> str:
        """Stream: the same entries without the delta class."""
        return self.run(run_id) + ":audit"

    def effects(self, run_id: str) -> str:
        """Hash: tool call id → intent or receipt; ``wait:<id>`` → open or answered."""
        return self.run(run_id) + ":effects"

    def snapshot(self, run_id: str) -> str:
        """String: a fold of the log."""
        return self.run(run_id) + ":snapshot"

    def of_run(self, run_id: str, agent: str = "", session: str | None = None) -> dict[str, KeyNames]:
        """Every key that a command on one run may touch, by the name the scripts have for it. All carry the run's shard tag.

        Args:
            run_id: The run.
            agent: Its agent, where the command has to do with queues.
            session: The name of the run's session. Where it has one, no command that writes an event may be called without.
        """
        tag = shard_of(run_id)
        names: dict[str, KeyNames] = {
            "run": self.run(run_id),
            "log": self.log(run_id),
            "audit": self.audit(run_id),
            "effects": self.effects(run_id),
            "snapshot": self.snapshot(run_id),
            "queue": self.queue(tag, agent),
            "timers": self.timers(tag),
            "bell": self.bell(tag),
            "wake": self.wake(tag),
            "agents": self.agents(tag),
        }
        return names if session is None else names | self.of_session(session)

    def idempotency(self, name: str) -> str:
        """String: run id and request fingerprint. `name` comes from `idempotency_name`."""
        return f"{self.prefix}:{{{shard_for(name, self.shards):02d}}}:idem:{name}"

    def handout(self, name: str) -> str:
        """String with an expiry: what a claim that was given a name stands for. `name` is a digest."""
        return f"{self.prefix}:{{{shard_for(name, self.shards):02d}}}:handout:{name}"

    def ticket(self, name: str) -> str:
        """String with an expiry: what a ticket stands for. `name` is a digest."""
        return f"{self.prefix}:{{{shard_for(name, self.shards):02d}}}:ticket:{name}"

    def of_caller(self, tenant: str, subject: str) -> dict[str, KeyNames]:
        """Every key that counts what a tenant and one of its subjects do, by the name the scripts have for it. All of them expire."""
        name = digest(tenant)
        theirs = f"{self.prefix}:{{{shard_for(name, self.shards):02d}}}:limit:{name}"
        own = f"{theirs}:{digest(tenant, subject)}"
        return {
            # Hashes: what was done in the present minute.
            "tenant_rates": f"{theirs}:rates",
            "rates": f"{own}:rates",
            # Sorted sets: unfinished runs.
            "tenant_runs": f"{theirs}:runs",
            "runs": f"{own}:runs",
            # Hashes: what each process has open.
            "tenant_open": f"{theirs}:open",
            "open": f"{own}:open",
            # Sorted set: names of agents, by when they were used last.
            "agents": f"{theirs}:agents",
        }

    def revoked(self) -> str:
        """Hash with an expiry: what was taken away, by a digest of from whom; one for all tenants."""
        return f"{self.prefix}:{{{self.tags[0]}}}:revoked"

    def session_name(self, tenant: str, session_id: str) -> str:
        """The name of a session in keys and cursors."""
        return session_name(tenant, session_id, self.shards)

    def session(self, name: str) -> str:
        """Hash: a session's facts and its sequence."""
        return f"{self.prefix}:{{{shard_of(name)}}}:session:{name}"

    def session_log(self, name: str) -> str:
        """Stream, capped: which events of which run come where in the session; one entry per batch."""
        return self.session(name) + ":log"

    def session_runs(self, name: str) -> str:
        """Sorted set: a session's runs by where in it each begins."""
        return self.session(name) + ":runs"

    def session_open(self, name: str) -> str:
        """Sorted set: those of a session's runs that have not ended, likewise. It names who to ask; what is true their records say."""
        return self.session(name) + ":open"

    def of_session(self, name: str) -> dict[str, KeyNames]:
        """Every key of a session, by the name the scripts have for it."""
        return {
            "session": self.session(name),
            "session_log": self.session_log(name),
            "session_runs": self.session_runs(name),
            "open": self.session_open(name),
            # Sorted set: places in it by the time from which on not everything up to there can be replayed.
            "lapses": self.session(name) + ":lapses",
        }

    def tenant_sessions(self, tag: str, tenant: str) -> str:
        """Sorted set: a tenant's sessions of this shard by creation time."""
        return f"{self.prefix}:{{{tag}}}:tenant:{digest(tenant)}:sessions"

    def tenant_runs(self, tag: str, tenant: str) -> str:
        """Sorted set: a tenant's runs of this shard by creation time."""
        return f"{self.prefix}:{{{tag}}}:tenant:{digest(tenant)}:runs"

    def queue(self, tag: str, agent: str) -> str:
        """Stream with a consumer group: work to claim; its pending list is the list of leases."""
        return f"{self.prefix}:{{{tag}}}:queue:{agent}"

    def poison(self, tag: str, agent: str) -> str:
        """Stream, capped: queue entries that named no run."""
        return f"{self.prefix}:{{{tag}}}:poison:{agent}"

    def agents(self, tag: str) -> str:
        """Set: agents that have a queue in this shard."""
        return f"{self.prefix}:{{{tag}}}:agents"

    def timers(self, tag: str) -> str:
        """Sorted set: ``kind:run_id`` by the time it is due."""
        return f"{self.prefix}:{{{tag}}}:timers"

    def bell(self, tag: str) -> str:
        """Stream, capped: "something happened to this run". A hint for followers."""
        return f"{self.prefix}:{{{tag}}}:bell"

    def wake(self, tag: str) -> str:
        """Stream, capped: "there is work for this agent", "this run shall stop". A hint for workers."""
        return f"{self.prefix}:{{{tag}}}:wake"


def idempotency_name(tenant: str, initiator: str, key: str) -> str:
    """The digest an idempotency key is found under: it belongs to one tenant and initiator."""
    return digest("idempotency", tenant, initiator, key)

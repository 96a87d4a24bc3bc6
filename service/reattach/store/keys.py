"""Every key name. Nothing else puts one together, and no script does.

All keys of a shard carry its tag in braces, so that they live in one cluster slot: one command can touch a run, its log and its queue, and
one `XREAD` can follow many runs. User text is in a key only as a digest: it cannot steer the slot.
"""

from ..core.ids import digest, shard_for, shard_of


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

    def of_run(self, run_id: str, agent: str = "") -> dict[str, str | None]:
        """Every key that a command on one run may touch, by the name the scripts have for it. All carry the run's shard tag."""
        tag = shard_of(run_id)
        return {
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

    def idempotency(self, name: str) -> str:
        """String: run id and request fingerprint. `name` comes from `idempotency_name`."""
        return f"{self.prefix}:{{{shard_for(name, self.shards):02d}}}:idem:{name}"

    def handout(self, name: str) -> str:
        """String with an expiry: what a claim that was given a name stands for. `name` is a digest."""
        return f"{self.prefix}:{{{shard_for(name, self.shards):02d}}}:handout:{name}"

    def ticket(self, name: str) -> str:
        """String with an expiry: what a ticket stands for. `name` is a digest."""
        return f"{self.prefix}:{{{shard_for(name, self.shards):02d}}}:ticket:{name}"

    def session_runs(self, tag: str, tenant: str, session_id: str) -> str:
        """Sorted set: a session's runs by creation time."""
        return f"{self.prefix}:{{{tag}}}:session:{digest(tenant, session_id)}:runs"

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


def session_shard(tenant: str, session_id: str, shards: int) -> int:
    """The shard of all runs of a session, so that one stream can carry them."""
    return shard_for(digest("session", tenant, session_id), shards)

"""How records and events look in Redis: flat text fields that an operator can read."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..core.event import Event
from ..core.run import NewRun, Retention, RunRecord

_TEXT = ("session_id", "parent_run_id", "model_policy", "tool_catalog", "input_version", "idempotency")
_RETENTION = {"deltas_ms": "retain_deltas", "events_ms": "retain_events", "run_ms": "retain_run"}
_BYTES = frozenset({"input", "metadata"})
_INTEGERS = frozenset(
    {
        "sequence", "created_at", "last_activity_at", "attempt", "batch", "lease_until", "losses", "receipts", "unresolved",
        "cancel_version", "started_at", "finished_at", "log_from", "covered", "floor",
    }
)  # fmt: skip
_FIELDS = frozenset(RunRecord.__struct_fields__) - {"retention", "sealed", "held"}

LISTED: Final = (*sorted(_FIELDS - _BYTES), *_RETENTION.values())
"""Fields of a record that a listing needs: without those that may be large."""


def pairs(flat: list[bytes]) -> dict[str, bytes]:
    """A hash reply (name, value, name, value …) as a mapping."""
    return {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}


def new_fields(new: NewRun, *, idempotency: str | None, fingerprint: str) -> list[Any]:
    """The constant fields of a record, flat, for `create`."""
    fields: dict[str, Any] = {
        "tenant": new.tenant,
        "initiator": new.initiator,
        "resource_scope": new.resource_scope or "",
        "release_id": new.release_id,
        "input": new.input,
        "metadata": new.metadata,
    }
    for name in _TEXT[:-1]:
        value = getattr(new, name)
        if value is not None:
            fields[name] = value
    if idempotency is not None:
        fields["idempotency"], fields["fingerprint"] = idempotency, fingerprint
    for attribute, name in _RETENTION.items():
        fields[name] = getattr(new.retention, attribute)
    return [item for pair in fields.items() for item in pair]


def to_record(hash_: Mapping[str, bytes]) -> RunRecord:
    """Read a record's hash; fields this version does not know are ignored, so that two versions can run side by side."""
    values: dict[str, Any] = {}
    for name, raw in hash_.items():
        if name not in _FIELDS or raw == b"":
            continue
        values[name] = raw if name in _BYTES else int(raw) if name in _INTEGERS else raw.decode()
    retention = Retention(**{a: int(hash_[n]) for a, n in _RETENTION.items() if n in hash_})
    flags = {"sealed": hash_.get("sealed") == b"1", "held": hash_.get("held") == b"1"}
    return RunRecord(retention=retention, **flags, **values)


def to_event(entry: Any) -> Event:
    """Read one stream entry ``[b"184-0", [b"type", …]]``; field order is the writer's."""
    fields = entry[1]
    return Event(
        int(entry[0][:-2]),
        fields[1].decode(),
        int(fields[3]),
        fields[5],
        fields[7].decode() if len(fields) > 7 else None,
    )


class Created(msgspec.Struct, frozen=True, kw_only=True):
    """What `Runs.create` answers: the run, and whether an earlier request with the same key had made it."""

    record: RunRecord
    replayed: bool


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a listing, newest first, and the run id to pass as `before` for the next one."""

    runs: tuple[RunRecord, ...]
    next_before: str | None


class CancelReply(msgspec.Struct, frozen=True, kw_only=True):
    """A cancel request's truthful answer: a disposition of contract section 6, and the sequence it was true at."""

    disposition: str
    sequence: int

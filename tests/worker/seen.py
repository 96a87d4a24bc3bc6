"""Looking at runs that workers work on."""

import json
from typing import Any

from reattach.core.event import Event
from reattach.core.run import RunRecord
from reattach.core.snapshot import Snapshot
from reattach.store import Store

from ..support.drive import create, raw
from ..support.waiting import wait_until


async def submit(store: Store, agent: str, value: Any = None, **facts: Any) -> str:
    """Create a run with an input; its id."""
    return await create(store, agent, input=raw({} if value is None else value), **facts)


async def submit_script(store: Store, *steps: list[Any], **facts: Any) -> str:
    """Create a run of the scripted agent; its id."""
    return await submit(store, "script", {"steps": list(steps)}, **facts)


async def events(store: Store, run_id: str) -> list[Event]:
    """The whole log."""
    return await store.events.after(run_id, 0, 100_000)


async def types(store: Store, run_id: str) -> list[str]:
    """The log's event types."""
    return [event.type for event in await events(store, run_id)]


async def payloads(store: Store, run_id: str, kind: str) -> list[dict[str, Any]]:
    """The payloads of all events of one type."""
    return [json.loads(event.payload) for event in await events(store, run_id) if event.type == kind]


async def reaches(store: Store, run_id: str, state: str, *, timeout: float = 10) -> RunRecord:
    """Wait until a run is in a state; its record."""

    async def there() -> RunRecord | None:
        record = await store.runs.load(run_id)
        assert record.state == state or not record.terminal, f"{run_id} is {record.state}, not {state}: {await types(store, run_id)}"
        return record if record.state == state else None

    return await wait_until(there, f"{run_id} to be {state}", timeout=timeout)


async def says(store: Store, run_id: str, kind: str, count: int = 1, *, timeout: float = 10) -> list[Event]:
    """Wait until the log has `count` events of a type; the log."""

    async def there() -> list[Event]:
        log = await events(store, run_id)
        return log if [e.type for e in log].count(kind) >= count else []

    return await wait_until(there, f"{count} {kind} of {run_id}", timeout=timeout)


async def ends(store: Store, run_id: str, *, timeout: float = 15) -> Snapshot:
    """Wait until a run ended; its snapshot."""

    async def over() -> bool:
        return (await store.runs.load(run_id)).terminal

    await wait_until(over, f"{run_id} to end", timeout=timeout)
    return await store.runs.snapshot(run_id)


def value(raw_json: Any) -> Any:
    """A snapshot's opaque member, decoded."""
    return None if raw_json is None else json.loads(bytes(raw_json))


async def outcome(store: Store, run_id: str, *, timeout: float = 15) -> Any:
    """Wait until a run succeeded; its outcome."""
    snapshot = await ends(store, run_id, timeout=timeout)
    assert snapshot.state == "succeeded", (snapshot.state, value(snapshot.error))
    return value(snapshot.outcome)


async def error(store: Store, run_id: str, *, timeout: float = 15) -> dict[str, Any]:
    """Wait until a run failed; its error."""
    snapshot = await ends(store, run_id, timeout=timeout)
    assert snapshot.state == "failed", snapshot.state
    return value(snapshot.error)


def texts(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Status and text of every message."""
    return [(m.status, "".join(part["text"] for part in value(m.content))) for m in snapshot.messages]

"""``reattach runs``: look at runs, stop them, settle what only a person can settle."""

import asyncio
import getpass
from collections.abc import Coroutine
from time import monotonic
from typing import Any, Final, get_args

import click
import msgspec

from ..core.cancel import PENDING
from ..core.errors import InvalidRequest, WaitNotOpen
from ..core.payload import check_json
from ..core.run import TERMINAL_STATES, State
from ..core.settings import Settings
from ..core.snapshot import Snapshot
from ..core.verdict import ABSENT, Verdict, asks_about, write_verdict
from ..http.answers import CancelAnswer, cancel_answer, input_answer, summary
from ..http.auth import DEVELOPMENT_TENANT
from ..store import RunPage, Store
from ..tail import Hub, changed
from .console import clean, compact, facts, is_terminal, state, table, write, write_bytes
from .folder import find_store
from .help import Group
from .options import STORE, with_settings
from .unserved import explain_waiting

_MEANINGS: Final = {
    "cancelled_before_effect": "cancelled; no mutating tool had committed",
    "cancelled_after_effect": "cancelled; these effects had happened and stand",
    PENDING: "asked to stop; its worker has not come to a boundary yet (wait for it with --wait SECONDS)",
    "already_terminal": "it had ended before; its outcome stands",
}

_json = click.option("--json", "as_json", is_flag=True, help="JSON also in a terminal.")


@click.group(cls=Group, short_help="List, show and cancel runs; settle tool calls.")
def runs() -> None:
    """Look at runs, stop them, and settle their tool calls. Tables in a terminal, JSON in a pipe.

        reattach runs ls --state running
        reattach runs show RUN | jq .outcome
        reattach runs cancel RUN --reason "wrong ticket" --wait 10
        reattach runs resolve RUN CALL --done --receipt refund_17

    They look into the store, as `reattach tail` does; no API needs to run.
    """


@runs.command("ls")
@click.option("--tenant", default=DEVELOPMENT_TENANT, show_default=True, help="Whose runs.")
@click.option("--state", "in_state", type=click.Choice(get_args(State)), help="Only runs in this state.")
@click.option("--session", "session_id", metavar="ID", help="Only runs of this session.")
@click.option("--agent", metavar="NAME", help="Only runs of this agent.")
@click.option("--limit", type=click.IntRange(1, 1000), metavar="N", default=20, show_default=True, help="Most runs to list.")
@click.option("--before", metavar="RUN", help="Only runs older than this one: the last of the page before.")
@_json
@with_settings(STORE)
def list_runs(
    settings: Settings,
    tenant: str,
    in_state: str | None,
    session_id: str | None,
    agent: str | None,
    limit: int,
    before: str | None,
    as_json: bool,
) -> None:
    """List runs, newest first; in a pipe one JSON object per line."""

    async def look(store: Store, limit: int, before: str | None) -> RunPage:
        return await store.runs.page(tenant, state=in_state, session_id=session_id, agent=agent, limit=limit, before=before)

    async def body(store: Store) -> None:
        page = await look(store, limit, before)
        rows = [summary(record) for record in page.runs]
        # One look goes through a bounded number of runs, of which few may be asked for.
        while page.next_before and len(rows) < limit:
            page = await look(store, limit - len(rows), page.next_before)
            rows += [summary(record) for record in page.runs]
        if as_json or not is_terminal():
            write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
            return
        table(
            ("RUN", "STATE", "AGENT", "ATTEMPT", "EVENTS", "CREATED", "SESSION"),
            [(r.run_id, r.state, r.agent, str(r.attempt), str(r.sequence), _time(r.created_at), r.session_id or "") for r in rows],
            coloured=1,
        )
        if page.next_before:
            write(f"\nolder ones: --before {page.next_before}\n")

    _with_store(settings, body)


@runs.command("show")
@click.argument("run_id", metavar="RUN")
@_json
@with_settings(STORE)
def show_run(settings: Settings, run_id: str, as_json: bool) -> None:
    """Show a run's snapshot: its state, messages, tools and outcome."""

    async def body(store: Store) -> None:
        snapshot = await store.runs.snapshot(run_id)
        if as_json or not is_terminal():
            write_bytes(msgspec.json.encode(snapshot) + b"\n")
        else:
            _show(snapshot, await explain_waiting(store, run_id))

    _with_store(settings, body)


@runs.command("cancel")
@click.argument("run_id", metavar="RUN")
@click.option("--reason", metavar="TEXT", help="Why; kept with the run.")
@click.option(
    "--wait", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="Wait this long until it is decided what became of it."
)
@_json
@with_settings(STORE)
def cancel_run(settings: Settings, run_id: str, reason: str | None, wait: float, as_json: bool) -> None:
    """Ask a run to stop, and say what really became of it.

    A run that waits or is queued ends at once; one that is being worked on at its next tool boundary. Effects that have happened are
    listed. The exit code is 0 whatever became of it.
    """

    async def body(store: Store) -> None:
        reply = await store.runs.cancel(run_id, by=f"cli:{_user()}", reason=reason, key=None, fingerprint="")
        snapshot = await _decided(store, settings, run_id, wait if reply.disposition == PENDING else 0)
        disposition = snapshot.cancel.disposition or PENDING if reply.disposition == PENDING else reply.disposition
        answer = cancel_answer(snapshot, disposition)
        if as_json or not is_terminal():
            write_bytes(msgspec.json.encode(answer) + b"\n")
        else:
            _show_cancel(answer)

    _with_store(settings, body)


@runs.command("resolve")
@click.argument("run_id", metavar="RUN")
@click.argument("call_id", metavar="CALL")
@click.option("--done/--not-done", "happened", default=None, help="Whether the call took effect; if not, the tool is called again.")
@click.option("--receipt", metavar="ID", help="With --done: what the outside calls the effect.")
@click.option("--version", metavar="RESOURCE:VERSION", help="With --done: the resource's version after it.")
@click.option("--result", metavar="JSON", help="With --done: what the tool would have returned.")
@_json
@with_settings(STORE)
def resolve_call(
    settings: Settings, run_id: str, call_id: str, happened: bool | None, as_json: bool, result: str | None, **said: str | None
) -> None:
    """Say what became of a tool call whose fate nobody knows.

    Its worker died between the call and the receipt, or the tool did not answer in time, and the run waits for a person who has looked.
    `reattach runs show RUN` lists such calls. The run then goes on: with the receipt, or by calling the tool.
    """
    if happened is None:
        raise click.UsageError("say --done or --not-done")
    if not happened and (result is not None or any(said.values())):
        raise click.UsageError("--receipt, --version and --result go with --done")
    if said["version"] is not None and not all(said["version"].rpartition(":")[::2]):
        raise click.UsageError("--version names the resource and its version, like order_7:v3")
    verdict = Verdict(happened=happened, receipt_id=said["receipt"], result_version=said["version"], result=_given(result, settings))

    async def body(store: Store) -> None:
        wait_id = _question(await store.runs.snapshot(run_id), call_id)
        value = write_verdict(verdict)
        sequence = await store.runs.answer(run_id, wait_id=wait_id, value=value, by=f"cli:{_user()}", key=None, fingerprint="")
        if as_json or not is_terminal():
            write_bytes(msgspec.json.encode(input_answer(run_id, wait_id, sequence)) + b"\n")
        else:
            became = "it happened; the run goes on with its receipt" if happened else "it did not happen; the tool is called again"
            facts([("run", run_id), ("call", clean(call_id)), ("said", became)])

    _with_store(settings, body)


def _given(result: str | None, settings: Settings) -> msgspec.Raw:
    """The text of a JSON value from the command line; nothing where there is none.

    Raises:
        InvalidRequest: It is not JSON.
    """
    if result is None:
        return ABSENT
    given = result.encode("utf-8", "surrogateescape")
    return msgspec.Raw(check_json(given, max_bytes=settings.max_payload, what="--result", want_object=False))


def _question(snapshot: Snapshot, call_id: str) -> str:
    """The open wait that asks about a call.

    Raises:
        InvalidRequest: This call is not unresolved.
        WaitNotOpen: It is, and the run does not wait for a person's word on it now.
    """
    unresolved = [u.tool_call_id for u in snapshot.unresolved]
    if call_id not in unresolved:
        others = f"these are: {', '.join(unresolved)}" if unresolved else "no call of this run is"
        raise InvalidRequest(f"tool call {call_id} is not unresolved; {others}", field="call")
    if snapshot.waiting is None or not asks_about(snapshot.waiting.wait_id, call_id):
        raise WaitNotOpen(f"the run is {snapshot.state} and does not wait for a word on {call_id}")
    return snapshot.waiting.wait_id


def _with_store(settings: Settings, body: "Any") -> None:
    async def opened() -> None:
        store = await Store.open(find_store(settings))
        try:
            work: Coroutine[Any, Any, None] = body(store)
            await work
        finally:
            await store.close()

    asyncio.run(opened())


async def _decided(store: Store, settings: Settings, run_id: str, seconds: float) -> Snapshot:
    """The snapshot once the run has ended, or as it is when the time is over."""
    end = monotonic() + seconds
    hub = Hub(store, settings)
    try:
        if seconds:
            await hub.start()
        while True:
            snapshot = await store.runs.snapshot(run_id)
            left = end - monotonic()
            if snapshot.state in TERMINAL_STATES or left <= 0:
                return snapshot
            if await changed(hub, run_id, snapshot.sequence, left) <= snapshot.sequence:
                # The time is over, or news cannot be waited for now: look once more, but do not spin.
                end = 0.0
    finally:
        await hub.close()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "operator"


def _time(text: str | None) -> str:
    return "" if text is None else text[:19].replace("T", " ")


def _show(s: Snapshot, why_queued: str | None) -> None:
    rows = [
        ("run", s.run_id),
        ("state", state(s.state) + ("" if s.attempt < 2 else f" (attempt {s.attempt})")),
        ("agent", s.agent),
        ("session", s.session_id or ""),
        ("scope", clean(s.resource_scope)),
        ("release", clean(s.release_id)),
        ("initiator", clean(f"{s.initiator} of {s.tenant}")),
        ("input", compact(msgspec.json.decode(s.input))),
        ("events", f"{s.earliest_sequence} to {s.sequence}" if s.earliest_sequence <= s.sequence else f"{s.sequence}, no longer kept"),
        ("created", _time(s.created_at)),
        ("started", _time(s.started_at)),
        ("finished", _time(s.finished_at)),
        ("cancel", "" if not s.cancel.version else clean(f"by {s.cancel.by}: {s.cancel.disposition}")),
        ("queued", why_queued or ""),
        ("waiting", "" if s.waiting is None else clean(f"{s.waiting.prompt or s.waiting.reason} (wait_id {s.waiting.wait_id})")),
        ("outcome", "" if s.outcome is None else compact(msgspec.json.decode(s.outcome))),
        ("error", "" if s.error is None else compact(msgspec.json.decode(s.error))),
        ("resources", "\n".join(clean(f"{name} {version}") for name, version in s.resources.items())),
    ]
    facts([row for row in rows if row[1]])
    for message in s.messages:
        write(f"\n{message.role} ({message.status})\n{_content(message.content)}\n")
    if s.tools:
        write("\n")
        table(
            ("TOOL", "STATUS", "CALL", "RECEIPT", "VERSION"),
            [(t.tool, t.status, t.tool_call_id, t.receipt_id or "", t.result_version or "") for t in s.tools],
        )


def _content(content: msgspec.Raw) -> str:
    parts: Any = msgspec.json.decode(content)
    return "\n".join(clean(str(p["text"])) if p.get("type") == "text" and "text" in p else compact(p) for p in parts)


def _show_cancel(answer: CancelAnswer) -> None:
    rows = [("run", answer.run_id), ("state", state(answer.state)), (answer.disposition, _MEANINGS.get(answer.disposition, ""))]
    rows += [("receipt", clean(f"{r.tool} {r.receipt_id or ''} {r.result_version or ''}".rstrip())) for r in answer.receipts]
    facts(rows)

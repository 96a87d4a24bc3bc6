"""``reattach revoke``: take away what was given, from everybody who has it, at once."""

import asyncio
import getpass
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import click
import msgspec

from ..core.errors import RunNotFound
from ..core.settings import Settings
from ..core.times import rfc3339
from ..http.auth import DEVELOPMENT_TENANT
from ..store import Store
from ..store.revocations import Revocation, Target
from .console import clean, is_terminal, table, write, write_bytes
from .folder import find_store
from .help import Command
from .options import STORE, with_settings

_DAY: Final = 86_400.0


@click.command(cls=Command, short_help="Take access away, everywhere and at once.")
@click.option("--tenant", default=DEVELOPMENT_TENANT, show_default=True, metavar="NAME", help="Whose: alone, everybody of the tenant.")
@click.option("--subject", metavar="NAME", help="From this subject, whatever tokens and tickets it has.")
@click.option("--login", metavar="ID", help="From this login: tokens with this sid, and tickets made with them.")
@click.option("--session", metavar="ID", help="Access to the runs of this session.")
@click.option("--run", metavar="RUN", help="Access to this run.")
@click.option("--all", "everybody", is_flag=True, help="From everybody of the tenant.")
@click.option("--reason", metavar="TEXT", help="Why; kept with it.")
@click.option(
    "--for",
    "seconds",
    type=click.FloatRange(1),
    default=30 * _DAY,
    show_default=True,
    metavar="SECONDS",
    help="How long to remember it: at least as long as tokens last.",
)
@click.option("--undo", is_flag=True, help="Let what was given before count again.")
@click.option("--list", "listing", is_flag=True, help="List what is taken away now.")
@click.option("--json", "as_json", is_flag=True, help="JSON also in a terminal.")
@with_settings(STORE)
def revoke(
    settings: Settings, listing: bool, undo: bool, reason: str | None, seconds: float, as_json: bool, **whom: str | bool | None
) -> None:
    """Take away what was given before now: from a subject, a login or a whole tenant, or of a session or a run.

        reattach revoke --tenant acme --subject ann
        reattach revoke --tenant acme --session conversation-17 --reason "wrong customer"
        reattach revoke --list

    Every API process hears of it: open streams end with unauthorized within a second, tokens and tickets made before are refused. Tokens
    made later are good again, unless they do not say when they were made (iat).
    """
    if listing:
        asyncio.run(_list(find_store(settings), as_json))
        return
    target = _target(whom)
    asyncio.run(_change(find_store(settings), target, undo=undo, seconds=seconds, reason=reason))


def _target(whom: dict[str, str | bool | None]) -> Target:
    tenant = str(whom.pop("tenant"))
    given = {name: value for name, value in whom.items() if value}
    if len(given) != 1:
        raise click.UsageError("say from whom, or of what: one of --subject, --login, --session, --run, --all")
    [(name, value)] = given.items()
    match name:
        case "subject" | "login" | "session" | "run":
            return Target(kind=name, tenant=tenant, name=str(value))
        case _:
            return Target(kind="tenant", tenant=tenant)


async def _change(settings: Settings, target: Target, *, undo: bool, seconds: float, reason: str | None) -> None:
    async with _open(settings) as store:
        if target.kind == "run":
            target = msgspec.structs.replace(target, tenant=await _tenant_of(store, target, undo=undo))
        if undo:
            write(f"{_say(target)}: {'given back' if await store.revocations.restore(target) else 'nothing was taken away'}\n")
            return
        at = await store.revocations.revoke(target, seconds=seconds, by=f"cli:{_user()}", reason=reason)
        write(f"{_say(target)}: what was given before {rfc3339(at)} counts no more\n")


@asynccontextmanager
async def _open(settings: Settings) -> AsyncGenerator[Store, None]:
    store = await Store.open(settings)
    try:
        yield store
    finally:
        await store.close()


async def _tenant_of(store: Store, target: Target, *, undo: bool) -> str:
    try:
        return (await store.runs.load(target.name)).tenant
    except RunNotFound:
        if not undo:
            raise
        return target.tenant


async def _list(settings: Settings, as_json: bool) -> None:
    async with _open(settings) as store:
        found = await store.revocations.read()
    revocations = () if found is None else found[1]
    if as_json or not is_terminal():
        write_bytes(b"".join(msgspec.json.encode(_row(each)) + b"\n" for each in revocations))
        return
    rows = [(e.target.kind, clean(e.target.tenant), clean(e.target.name), rfc3339(e.at), rfc3339(e.until), e.by) for e in revocations]
    table(("OF", "TENANT", "NAME", "BEFORE", "UNTIL", "BY"), rows)


def _row(each: Revocation) -> dict[str, str | None]:
    return {
        "kind": each.target.kind,
        "tenant": each.target.tenant,
        "name": each.target.name,
        "before": rfc3339(each.at),
        "until": rfc3339(each.until),
        "by": each.by,
        "reason": each.reason,
    }


def _say(target: Target) -> str:
    return f"{target.kind} {target.name or target.tenant}" + (f" of {target.tenant}" if target.name and target.kind != "run" else "")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"

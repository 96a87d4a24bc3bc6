"""What was taken away, as this process knows it: nobody gets in with it, and whoever is in is put out at once.

The copy here is right within a moment: a bell tells of every change, a lost bell is made good by looking now and then, and nobody is let
in before there is a copy.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Final

import structlog

from ...core.errors import StoreUnavailable
from ...core.run import RunRecord
from ...store import Ring
from ...store.revocations import NEWS, Kind, Revocation, Revocations, Target
from .principal import Action, Authorizer, InvalidCredential, Principal, visible

_log = structlog.get_logger("reattach.auth")

_AGAIN: Final = 0.5
"""Pause before the next try where the store is away, seconds."""


class Revoked:
    """One process's copy."""

    def __init__(self, revocations: Revocations, *, interval: float) -> None:
        """Know nothing yet.

        Args:
            revocations: Where they are.
            interval: How often to look without having been told, seconds.
        """
        self._revocations, self._interval = revocations, interval
        self._version = ""
        self._at: dict[Target, int] = {}
        self._told = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._first: asyncio.Task[None] | None = None
        self._closed = False
        self._on_change: list[Callable[[], None]] = []

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call back when something was taken away; it must not block."""
        self._on_change.append(changed)

    def heard(self, ring: Ring) -> None:
        """A hint came."""
        if ring.everything or NEWS in ring.runs:
            self._told.set()

    async def check(self, principal: Principal) -> None:
        """Let a credential in.

        Raises:
            InvalidCredential: It was revoked.
            StoreUnavailable: What is revoked was never read, and cannot be now.
        """
        if self._version == "":
            await self._begin()
        if self._at and self.refuses(principal):
            raise InvalidCredential("the credential was revoked; get another one")

    def refuses(self, principal: Principal, *, run_id: str | None = None, session_id: str | None = None) -> bool:
        """Whether what the credential stands for was taken away, at all or for a run or session."""
        if not self._at:
            return False
        tenant = principal.tenant
        asked: list[tuple[Kind, str, str | None]] = [
            ("tenant", tenant, ""), ("subject", tenant, principal.subject), ("login", tenant, principal.session),
            ("session", tenant, session_id), ("run", tenant, run_id),
        ]  # fmt: skip
        last = max((self._at.get(Target(kind=k, tenant=t, name=n), -1) for k, t, n in asked if n is not None), default=-1)
        # A credential that does not say when it was made cannot be younger than what was taken away.
        return last >= 0 and (principal.issued_at is None or principal.issued_at * 1000 <= last)

    async def close(self) -> None:
        """Look no more, but for the first time when somebody still asks while the process drains."""
        self._closed = True
        tasks = [task for task in (self._task, self._first) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _begin(self) -> None:
        if self._first is None or self._first.done():
            self._first = asyncio.create_task(self._look(), name="reattach-revoked-first")
        # Whoever leaves does not take it from the others.
        await asyncio.shield(self._first)
        if self._task is None and not self._closed:
            self._task = asyncio.create_task(self._keep(), name="reattach-revoked")

    async def _keep(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval * random.uniform(0.8, 1.0)):
                    await self._told.wait()
            # Before looking: what comes meanwhile may not be in the answer.
            self._told.clear()
            try:
                await self._look()
            except StoreUnavailable:
                self._told.set()
                await asyncio.sleep(_AGAIN * random.uniform(0.5, 1.0))
            except Exception:
                _log.exception("auth.revocations_failed")
                await asyncio.sleep(_AGAIN)

    async def _look(self) -> None:
        found = await self._revocations.read(self._version)
        if found is None:
            return
        before = self._at
        self._version, self._at = found[0], _newest(found[1])
        if any(before.get(target, -1) < at for target, at in self._at.items()):
            for changed in self._on_change:
                changed()


def _newest(revocations: tuple[Revocation, ...]) -> dict[Target, int]:
    return {each.target: each.at for each in revocations}


class Unrevoked:
    """An authorizer that allows what another one does, unless it was taken away."""

    def __init__(self, authorizer: Authorizer, revoked: Revoked) -> None:
        """Ask both."""
        self._authorizer, self._revoked = authorizer, revoked

    async def may(self, principal: Principal, action: Action, record: RunRecord | None) -> bool:
        """Whether both say yes."""
        run_id, session_id = (None, None) if record is None else (record.run_id or None, record.session_id)
        if self._revoked.refuses(principal, run_id=run_id, session_id=session_id):
            return False
        return await self._authorizer.may(principal, action, record)

    async def may_see(self, principal: Principal, record: RunRecord, scope: str) -> bool:
        """What the other one says; whoever may not read the run at all was told so."""
        return await visible(self._authorizer, principal, record, scope)

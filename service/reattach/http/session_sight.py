"""What a reader of a session is shown of each of its runs: events of one that they may not read come without their payload."""

import asyncio
from collections.abc import Iterable
from typing import Final

from ..core.errors import AuthUnavailable, RunNotFound
from ..store import Store
from ..tail import Slice
from .auth import Authorizer, Principal, permitted, visible

MOST_KNOWN: Final = 1000
"""Answers that are remembered; beyond that everything is asked again."""


async def hidden_places(store: Store, authorizer: Authorizer, principal: Principal, scopes: Iterable[str]) -> frozenset[str]:
    """Those whose events the reader of a session may not see.

    Args:
        store: Where a run's current owner and scope are.
        authorizer: Who decides.
        principal: Who looks.
        scopes: Each a run's id and, behind a blank, the scope of events that have one of their own.

    Raises:
        AuthUnavailable: The authorizer cannot say now.
        StoreUnavailable: Redis cannot be reached.
    """
    by_run: dict[str, list[str]] = {}
    for text in scopes:
        by_run.setdefault(text.partition(" ")[0], []).append(text)
    hidden: set[str] = set()
    for run_id, texts in by_run.items():
        try:
            record = await store.runs.load(run_id)
        except RunNotFound:
            hidden.update(texts)
            continue
        if not await permitted(authorizer, principal, "read", record):
            hidden.update(texts)
            continue
        for text in texts:
            scope = text.partition(" ")[2]
            if scope and not await visible(authorizer, principal, record, scope):
                hidden.add(text)
    return frozenset(hidden)


class SessionSight:
    """One viewer's sight of one session; see `sight.Sight`."""

    __slots__ = ("_asked_at", "_authorizer", "_clock", "_hidden", "_known", "_lasts", "_principal", "_store")

    def __init__(self, store: Store, authorizer: Authorizer, principal: Principal, *, lasts: float) -> None:
        """Nothing was asked yet.

        Args:
            store: Where the runs are.
            authorizer: Who decides.
            principal: Who looks.
            lasts: How long an answer counts, seconds.
        """
        self._store, self._authorizer, self._principal, self._lasts = store, authorizer, principal, lasts
        self._clock = asyncio.get_running_loop().time
        self._asked_at = 0.0
        self._known: frozenset[str] = frozenset()
        self._hidden: frozenset[str] = frozenset()

    def of(self, piece: Slice) -> Slice | None:
        """The piece as this viewer sees it; None where that has to be asked first."""
        if self._clock() - self._asked_at > self._lasts or not piece.scopes <= self._known:
            return None
        return piece.without(self._hidden)

    async def ask(self, piece: Slice) -> Slice:
        """The piece as this viewer sees it.

        Raises:
            AuthUnavailable: The authorizer cannot say now.
            StoreUnavailable: Redis cannot be reached.
        """
        now = self._clock()
        if now - self._asked_at > self._lasts or len(self._known) > MOST_KNOWN:
            self._asked_at, self._known, self._hidden = now, frozenset(), frozenset()
        fresh = piece.scopes - self._known
        try:
            async with asyncio.timeout(self._lasts):
                hidden = await hidden_places(self._store, self._authorizer, self._principal, fresh)
        except TimeoutError:
            raise AuthUnavailable("who may see this cannot be found out now") from None
        self._known, self._hidden = self._known | fresh, self._hidden | hidden
        return piece.without(self._hidden)

"""What a reader is shown of events about something else than their run: whoever may not read that gets them without their payload."""

import asyncio
from collections.abc import Iterable
from typing import Final

from ..core.errors import AuthUnavailable
from ..core.run import RunRecord
from ..tail import Slice
from .auth import Authorizer, Principal, visible

MOST_SCOPES: Final = 1000
"""Scopes that one answer asks about. What a run has beyond that is not shown, rather than asked about for ever."""


async def hidden_scopes(authorizer: Authorizer, principal: Principal, record: RunRecord, scopes: Iterable[str]) -> frozenset[str]:
    """Those of the scopes whose events a reader of the run may not see.

    Raises:
        AuthUnavailable: The authorizer cannot say now.
    """
    found = sorted(set(scopes) - {record.resource_scope})
    asked = found[:MOST_SCOPES]
    answers = await asyncio.gather(*(visible(authorizer, principal, record, scope) for scope in asked))
    return frozenset(scope for scope, shown in zip(asked, answers, strict=True) if not shown) | frozenset(found[MOST_SCOPES:])


class Sight:
    """One viewer's sight of one run. An answer of the authorizer counts for a part of the keep-alive interval, then it is asked again."""

    __slots__ = ("_asked_at", "_authorizer", "_clock", "_hidden", "_known", "_lasts", "_principal", "_record")

    def __init__(self, authorizer: Authorizer, principal: Principal, record: RunRecord, *, lasts: float) -> None:
        """Nothing was asked yet.

        Args:
            authorizer: Who decides.
            principal: Who looks.
            record: The run.
            lasts: How long an answer counts, seconds.
        """
        self._authorizer, self._principal, self._record, self._lasts = authorizer, principal, record, lasts
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
        """
        now = self._clock()
        if now - self._asked_at > self._lasts or len(self._known) > MOST_SCOPES:
            self._asked_at, self._known, self._hidden = now, frozenset(), frozenset()
        fresh = piece.scopes - self._known
        try:
            # One answer that never comes must not keep the viewer waiting for ever.
            async with asyncio.timeout(self._lasts):
                hidden = await hidden_scopes(self._authorizer, self._principal, self._record, fresh)
        except TimeoutError:
            raise AuthUnavailable("who may see this cannot be found out now") from None
        self._known, self._hidden = self._known | fresh, self._hidden | hidden
        return piece.without(self._hidden)

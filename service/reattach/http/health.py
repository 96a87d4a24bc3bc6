"""What machines ask of the process itself: limits, liveness, readiness, metrics."""

import asyncio
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp

from ..core.errors import StoreUnavailable
from ..core.event import MAX_TYPE
from ..core.payload import MAX_DEPTH
from ..obs import metrics
from .answers import Health, Limits, Readiness, allowances
from .auth.tokens import MAX_TOKEN
from .bodies import MAX_KEY, MAX_METADATA, MAX_PAGE_EVENTS, MAX_PAGE_RUNS, MAX_REASON, MAX_WAIT, NoQuery, deployment_retention
from .service import Call, answer
from .wire import MAX_HEAD
from .worker_bodies import MAX_AGENTS, MAX_BATCH

READY_WITHIN: Final = 3.0
"""Whoever asks for readiness waits a few seconds at most; a server that answers later is not ready, though commands wait longer for it."""


async def show_limits(call: Call) -> ASGIApp:
    """``GET /limits``."""
    call.query(NoQuery)
    await call.authorise()
    settings = call.service.settings
    limits = Limits(
        max_body=settings.max_body,
        max_payload=settings.max_payload,
        max_head=MAX_HEAD,
        max_token=MAX_TOKEN,
        max_metadata=MAX_METADATA,
        max_depth=MAX_DEPTH,
        max_idempotency_key=MAX_KEY,
        max_reason=MAX_REASON,
        max_page_events=MAX_PAGE_EVENTS,
        max_page_runs=MAX_PAGE_RUNS,
        max_batch=MAX_BATCH,
        max_agents=MAX_AGENTS,
        max_wait=MAX_WAIT,
        max_streams=settings.max_streams,
        max_event_type=MAX_TYPE,
        keepalive=settings.keepalive,
        stream_lifetime=settings.stream_lifetime,
        write_timeout=settings.write_timeout,
        ticket_lifetime=settings.ticket_lifetime,
        lease=settings.lease,
        live_events=settings.live_events,
        **allowances(settings),
        retention=deployment_retention(settings),
    )
    return answer(limits)


async def healthz(_: Call) -> ASGIApp:
    """``GET /healthz``: the loop turns. Redis is not asked: restarting this process would not bring it back."""
    return answer(Health(status="ok"), cache_control="no-store")


async def readyz(call: Call) -> ASGIApp:
    """``GET /readyz``: whether this process should be sent requests."""
    if call.service.hub.closing is not None:
        raise StoreUnavailable("this process is stopping", reason="stopping")
    try:
        async with asyncio.timeout(READY_WITHIN):
            facts = await call.service.store.facts()
    except TimeoutError:
        raise StoreUnavailable(f"the store did not answer within {READY_WITHIN:g} seconds", reason="slow") from None
    if not facts.safe:
        raise StoreUnavailable(
            f"the {facts.name} server is not safe to hold runs: role {facts.role} (must be master), "
            f"maxmemory-policy {facts.eviction} (must be noeviction)",
            reason="unsafe",
        )
    ready = Readiness(status="ready", server=facts.name, version=facts.version, append_only=facts.append_only)
    return answer(ready, cache_control="no-store")


async def show_metrics(_: Call) -> ASGIApp:
    """``GET /metrics``."""
    return Response(metrics.render(), headers={"cache-control": "no-store"}, media_type=metrics.CONTENT_TYPE)

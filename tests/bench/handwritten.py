"""What a user writes in an afternoon: Starlette, sse-starlette, and one XREAD BLOCK per connection."""

import json
import os
import re
from collections.abc import AsyncGenerator
from typing import Any

from redis.asyncio import ConnectionPool, Redis
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

PORT = int(os.environ.get("REDIS_PORT", "6379"))
PING = float(os.environ.get("KEEPALIVE_S", "15"))
redis: Any = Redis(
    connection_pool=ConnectionPool(host="127.0.0.1", port=PORT, decode_responses=True, socket_timeout=None, max_connections=20_000)
)


async def _stream(key: str, last: str) -> AsyncGenerator[dict[str, str]]:
    while True:
        reply: Any = await redis.xread({key: last}, count=500, block=15_000)
        read: list[tuple[str, list[tuple[str, dict[str, str]]]]] = reply or []
        for _, entries in read:
            for last, fields in entries:
                data = {"type": fields["t"], "payload": {"text": fields["d"]}}
                yield {"id": last, "event": fields["t"], "data": json.dumps(data)}


async def events(request: Request) -> Response:
    """Follow a run."""
    cursor = request.headers.get("last-event-id") or "0"
    if not re.fullmatch(r"\d+(-\d+)?", cursor):
        return JSONResponse({"error": "malformed cursor"}, 400)
    made: Any = EventSourceResponse(_stream(f"run:{request.path_params['run']}", cursor), ping=int(PING))
    return made


app = Starlette(routes=[Route("/sub/{run}", events)])

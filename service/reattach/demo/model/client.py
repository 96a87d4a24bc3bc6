"""Asking a model: one request, one stream of pieces, and failures that are safe to show."""

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx
from httpx_sse import EventSource, SSEError, aconnect_sse

from .dialect import Request
from .endpoint import Endpoint
from .failures import CUT, MalformedChunk, ModelError, by_status
from .pieces import Decoder, Done, ModelFailed, Piece

TRIES: Final = 3
LONGEST_PAUSE: Final = 30.0
"""Seconds; an endpoint that asks for more patience gets none."""
CONNECT: Final = 10.0
LINGER: Final = 1.0
"""Seconds to wait for the end of a body whose turn is complete; a provider may say more, or keep the connection."""


class Model:
    """One endpoint. Use it in ``async with``."""

    def __init__(self, endpoint: Endpoint, *, first_pause: float = 0.5) -> None:
        """Ask an endpoint.

        Args:
            endpoint: Where and how.
            first_pause: Seconds before the second try, where the endpoint does not say; doubles from then on.
        """
        self._endpoint = endpoint
        self._first_pause = first_pause
        self._http = httpx.AsyncClient(timeout=httpx.Timeout(endpoint.silence, connect=min(CONNECT, endpoint.silence)))

    @property
    def name(self) -> str:
        """The model's name."""
        return self._endpoint.model

    async def __aenter__(self) -> "Model":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def turn(self, request: Request) -> AsyncGenerator[Piece, None]:
        """One turn, piece by piece; complete when this ends without an error.

        A request is sent again, a few times, only as long as no piece was handed out: what was shown cannot be taken back.

        Raises:
            ModelError: The turn failed.
        """
        body = self._endpoint.dialect.body(request)
        pause = self._first_pause
        for left in reversed(range(TRIES)):
            used = False
            try:
                async with aclosing(self._answer(body)) as pieces:
                    async for piece in pieces:
                        used = True
                        yield piece
                return
            except ModelError as e:
                wait = random.uniform(0.5, 1.0) * pause if e.retry_after is None else e.retry_after
                if used or not left or not e.retryable or wait > LONGEST_PAUSE:
                    raise
            await asyncio.sleep(wait)
            pause *= 2

    async def _answer(self, body: bytes) -> AsyncGenerator[Piece, None]:
        headers = {"Content-Type": "application/json", **self._endpoint.dialect.headers(self._endpoint.key)}
        try:
            async with (
                aconnect_sse(self._http, "POST", self._endpoint.url, content=body, headers=headers) as source,
                aclosing(self._pieces(source)) as pieces,
            ):
                async for piece in pieces:
                    yield piece
        except httpx.RequestError as e:
            # Not chained: the original may quote a header, and with it the key.
            raise ModelError(_by_transport(e)) from None

    async def _pieces(self, source: EventSource) -> AsyncGenerator[Piece, None]:
        response = source.response
        if response.status_code != 200:
            raise ModelError(by_status(response.status_code), retry_after=_retry_after(response.headers.get("Retry-After")))
        # Event streams are UTF-8, whatever a header says; a byte order mark at the start is not content.
        response.encoding = "utf-8-sig"
        decoder = self._endpoint.dialect.decoder()
        complete, broken = False, CUT
        async with aclosing(source.aiter_sse()) as events:
            while True:
                try:
                    async with asyncio.timeout(LINGER if complete else None):
                        event = await anext(events)
                except SSEError:
                    raise ModelError(ModelFailed("refused_request", "the model endpoint did not answer with an event stream")) from None
                except (StopAsyncIteration, TimeoutError):
                    break
                except httpx.RequestError as e:
                    broken = _by_transport(e)
                    break
                for piece in _decoded(decoder, event.data):
                    complete = isinstance(piece, Done)
                    yield piece
        # Whether the turn was complete is for the protocol to say: some cut the connection where they should end the body.
        for piece in decoder.end():
            if isinstance(piece, ModelFailed):
                raise ModelError(broken)
            yield piece


def _decoded(decoder: Decoder, data: str) -> Iterator[Piece]:
    try:
        pieces = decoder.feed(data) if data else []
    except MalformedChunk:
        raise ModelError(ModelFailed("malformed", "the model endpoint sent a chunk that is not what its protocol says")) from None
    for piece in pieces:
        if isinstance(piece, ModelFailed):
            raise ModelError(piece)
        yield piece


def _by_transport(error: httpx.RequestError) -> ModelFailed:
    if isinstance(error, httpx.TimeoutException):
        return ModelFailed("timeout", "the model endpoint was silent for too long")
    if isinstance(error, httpx.ConnectError | httpx.ProxyError):
        return ModelFailed("unreachable", "the model endpoint cannot be reached")
    return CUT


def _retry_after(header: str | None) -> float | None:
    """Seconds from now; the header names either seconds or a date."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds())

"""The way from a socket to pieces: every portion, every disturbance, and failures that give nothing away."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import msgspec
import pytest

from reattach.demo.model.client import LINGER, Model
from reattach.demo.model.dialect import Asked, Request, Tool
from reattach.demo.model.endpoint import DIALECTS, Endpoint
from reattach.demo.model.failures import ModelError
from reattach.demo.model.pieces import Done, Piece, Text, ToolCallReady

from ..support.processes import free_port
from .provider import Provider, Reply, Split, at_once, at_random, by_byte, sse
from .said import ARGUMENTS, SAID, TEXT, chat

KEY = "sk-very-secret-4711"
EVERY = pytest.mark.parametrize("api", sorted(SAID))
TOOL = Tool(name="tickets_read", description="Reads.", parameters=msgspec.Raw(b'{"type":"object"}'))


def endpoint(base_url: str, api: str = "chat", *, silence: float = 5.0) -> Endpoint:
    """An endpoint as the environment would give it."""
    return Endpoint(url=base_url + DIALECTS[api].path, key=KEY, model="small", dialect=DIALECTS[api], silence=silence)


async def ask(provider: Provider, api: str = "chat", *, into: list[Piece] | None = None, silence: float = 5.0) -> list[Piece]:
    """One turn; the pieces, which are in `into` also where it fails."""
    pieces: list[Piece] = [] if into is None else into
    request = Request(model="small", instructions="Be short.", tools=[TOOL], conversation=[Asked("Hi?")])
    async with Model(endpoint(provider.base_url, api, silence=silence), first_pause=0.01) as model:
        async for piece in model.turn(request):
            pieces.append(piece)
    return pieces


async def failure(provider: Provider, api: str = "chat", *, into: list[Piece] | None = None, silence: float = 5.0) -> ModelError:
    """How a turn fails; that must never show the key."""
    with pytest.raises(ModelError) as caught:
        await ask(provider, api, into=into, silence=silence)
    assert KEY not in repr(caught.getrepr(showlocals=False)) and KEY not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value


def text(pieces: list[Piece]) -> str:
    """The text among pieces."""
    return "".join(piece.text for piece in pieces if isinstance(piece, Text))


@EVERY
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("split", [at_once, by_byte, at_random(7)], ids=["at once", "by byte", "at random"])
async def test_any_portions(api: str, newline: str, split: Split) -> None:
    """However the bytes arrive and lines end, with comments and empty events in between, the pieces are the same."""
    body = sse(SAID[api](TEXT, ("c", "tickets_read", ARGUMENTS)), newline=newline, noise=True)
    async with Provider(Reply(body, split=split)) as provider:
        pieces = await ask(provider, api)
    assert text(pieces) == "".join(TEXT)
    assert [piece.arguments for piece in pieces if isinstance(piece, ToolCallReady)] == ["".join(ARGUMENTS)]
    assert isinstance(pieces[-1], Done)


@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b"\n\n", b": only a comment\n\n"])
async def test_before_the_first_event(prefix: bytes) -> None:
    """A byte order mark, empty lines or a comment at the start take nothing from the first event."""
    async with Provider(Reply(prefix + sse(chat(["first", " last"])))) as provider:
        assert text(await ask(provider)) == "first last"


async def test_a_header_that_names_another_encoding() -> None:
    """Event streams are UTF-8 whatever the header says."""
    async with Provider(Reply(sse(chat(TEXT)), content_type="text/event-stream; charset=latin-1")) as provider:
        assert text(await ask(provider)) == "".join(TEXT)


@EVERY
async def test_a_very_long_line(api: str) -> None:
    """A line of a megabyte in portions that cut its characters is one piece."""
    long = "Ω🎲x" * 150_000
    async with Provider(Reply(sse(SAID[api](["a", long, "b"])), split=at_random(3, 9000))) as provider:
        assert text(await ask(provider, api)) == f"a{long}b"


@EVERY
async def test_what_is_sent(api: str) -> None:
    """Address, credentials, instructions, question and tools are where the protocol wants them."""
    async with Provider(Reply(sse(SAID[api](["ok"])))) as provider:
        await ask(provider, api)
    sent = provider.requests[0]
    assert (sent.method, sent.path) == ("POST", f"/v1{DIALECTS[api].path}")
    assert KEY in (sent.headers["x-api-key"] if api == "messages" else sent.headers["authorization"].removeprefix("Bearer "))
    assert sent.headers["accept"] == "text/event-stream"
    assert sent.body["model"] == "small" and sent.body["stream"] is True
    whole = str(sent.body)
    assert all(part in whole for part in ("Be short.", "Hi?", "tickets_read", "'type': 'object'"))


@pytest.mark.parametrize(
    ("status", "code", "tries"),
    [
        (401, "refused_credentials", 1),
        (403, "refused_credentials", 1),
        (404, "refused_request", 1),
        (400, "refused_request", 1),
        (302, "refused_request", 1),
        (429, "rate_limited", 3),
        (408, "overloaded", 3),
        (500, "overloaded", 3),
        (529, "overloaded", 3),
    ],
)
async def test_statuses(status: int, code: str, tries: int) -> None:
    """Each status is a kind of failure; what may pass is tried again, a few times. No body is shown."""
    async with Provider(Reply(b'{"error":"secret detail"}', status=status, content_type="application/json")) as provider:
        error = await failure(provider)
    assert error.failed.code == code and str(status) in error.failed.message
    assert "secret" not in error.failed.message
    assert len(provider.requests) == tries


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_retry_after_is_waited_for(form: str) -> None:
    """The pause is the one the endpoint asked for, in either form of the header."""
    after = "1" if form == "seconds" else format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    async with Provider(Reply(status=429, headers={"Retry-After": after}), Reply(sse(chat(["ok"])))) as provider:
        since = time.monotonic()
        assert text(await ask(provider)) == "ok"
    assert time.monotonic() - since > 0.6
    assert len(provider.requests) == 2


async def test_an_endpoint_that_wants_too_much_patience() -> None:
    """A pause of minutes is a failure now, not a run that seems to hang."""
    async with Provider(Reply(status=429, headers={"Retry-After": "600"})) as provider:
        assert (await failure(provider)).failed.code == "rate_limited"
    assert len(provider.requests) == 1


@pytest.mark.parametrize("header", ["soon", "", "-1", "Wed, 99 Foo"])
async def test_retry_after_that_makes_no_sense(header: str) -> None:
    """A header that cannot be read is as good as none."""
    async with Provider(Reply(status=503, headers={"Retry-After": header}), Reply(sse(chat(["ok"])))) as provider:
        assert text(await ask(provider)) == "ok"


async def test_nobody_listens() -> None:
    """An address where nobody listens is a failure of its own kind."""
    request = Request(model="small", instructions="", tools=[], conversation=[Asked("Hi?")])
    async with Model(endpoint(f"http://127.0.0.1:{free_port()}/v1"), first_pause=0.01) as model:
        with pytest.raises(ModelError) as caught:
            _ = [piece async for piece in model.turn(request)]
    assert caught.value.failed.code == "unreachable"


async def test_an_answer_that_is_no_event_stream() -> None:
    """Status 200 with something else in it is refused, once."""
    async with Provider(Reply(b"<html>secret</html>", content_type="text/html")) as provider:
        error = await failure(provider)
    assert error.failed.code == "refused_request" and len(provider.requests) == 1


@EVERY
async def test_a_cut_before_the_first_piece_is_tried_again(api: str) -> None:
    """As long as nothing was shown, a broken stream costs nothing but a new request."""
    async with Provider(Reply(b": hello\n\n", ending="cut"), Reply(sse(SAID[api](["ok"])))) as provider:
        assert text(await ask(provider, api)) == "ok"
    assert len(provider.requests) == 2


@EVERY
@pytest.mark.parametrize("ending", ["cut", "whole"])
async def test_a_cut_after_a_piece_is_final(api: str, ending: str) -> None:
    """What was shown cannot be taken back: no second request, and a clean end of the body is no better than a cut."""
    chunks = SAID[api](["some ", "text"], ("c", "x", ["{}"]))
    pieces: list[Piece] = []
    body = sse(chunks[:-4])
    async with Provider(Reply(body, ending="cut" if ending == "cut" else "whole")) as provider:
        error = await failure(provider, api, into=pieces)
    assert error.failed.code == "cut"
    assert text(pieces).startswith("some ")
    assert len(provider.requests) == 1


@EVERY
@pytest.mark.parametrize("ending", ["cut", "stall"])
async def test_a_turn_that_is_complete_needs_no_end(api: str, ending: str) -> None:
    """After its last event a turn is whole, though the connection breaks or stays open."""
    async with Provider(Reply(sse(SAID[api](["ok"])), ending="cut" if ending == "cut" else "stall")) as provider:
        async with asyncio.timeout(LINGER + 3):
            pieces = await ask(provider, api)
    assert text(pieces) == "ok" and isinstance(pieces[-1], Done)


async def test_silence() -> None:
    """An endpoint that goes silent is a timeout: tried again before the first piece, final after it."""
    async with Provider(Reply(ending="stall"), Reply(sse(chat(["ok"])))) as provider:
        assert text(await ask(provider, silence=0.3)) == "ok"
    async with Provider(Reply(sse(chat(["ok"])[:2]), ending="stall")) as provider:
        assert (await failure(provider, silence=0.3)).failed.code == "timeout"
    assert len(provider.requests) == 1


@EVERY
async def test_a_chunk_that_cannot_be_read(api: str) -> None:
    """A malformed chunk fails the turn, typed, and shows nothing of itself."""
    async with Provider(Reply(sse([*SAID[api](["ok"])[:3], '{"secret": ']))) as provider:
        error = await failure(provider, api)
    assert error.failed.code == "malformed" and "secret" not in str(error)


async def test_an_error_as_the_first_event_is_tried_again() -> None:
    """A provider that is overloaded may say so inside the stream; nothing was shown yet."""
    busy = '{"type":"error","error":{"type":"overloaded_error"}}'
    async with Provider(Reply(sse([busy])), Reply(sse(SAID["messages"](["ok"])))) as provider:
        assert text(await ask(provider, "messages")) == "ok"
    assert len(provider.requests) == 2


async def test_leaving_in_the_middle_closes_the_connection() -> None:
    """Whoever stops listening leaves no open connection behind."""
    request = Request(model="small", instructions="", tools=[], conversation=[Asked("Hi?")])
    async with Provider(Reply(sse(chat(["a", "b"])[:3]), ending="stall")) as provider, Model(endpoint(provider.base_url)) as model:
        turn = model.turn(request)
        assert await anext(turn) == Text("a")
        await turn.aclose()

"""O06: characters torn apart at chunk borders: what was appended is what is read, code point for code point."""

import pytest

from reattach import Agents, Run

from ..support.calls import check_problem, ended, new_run_id
from ..support.drive import Hand, start
from ..support.factories import Proxies, Workers
from ..support.scale import LONG
from ..support.service import Service

TEXTS = ["那个", "🌍", "e\u0301", "👩\u200d👩\u200d👧", "\u2028\u2029", "\u0085"]
BORDERS = (4096, 8192, 16384, 65536)


def straddling() -> list[str]:
    """Texts in which a four-byte character lies across a usual buffer size, whatever precedes the text in its frame."""
    # The frame's head is of no fixed length, so the characters after the padding are many, at every offset.
    return ["a" * (border - 700 + shift) + "🌍" * 350 for border in BORDERS for shift in range(3 if LONG > 1 or border < 60_000 else 1)]


async def write_texts(hand: Hand, texts: list[str]) -> None:
    """One message with one delta per text."""
    await hand.emit(("message.started", {"message_id": "m", "role": "assistant"}))
    for text in texts:
        await hand.emit(("message.delta", {"message_id": "m", "text": text}))
    await hand.emit(("message.completed", {"message_id": "m", "role": "assistant", "content": [{"type": "text", "text": "".join(texts)}]}))
    await hand.finish()


@pytest.mark.parametrize(("texts", "segment"), [(TEXTS, 1), (straddling(), 509)], ids=["one byte per segment", "across buffer borders"])
async def test_texts_arrive_as_they_were_written(service: Service, proxies: Proxies, texts: list[str], segment: int) -> None:
    """Live and replayed, in the smallest portions: equal to the input, no replacement character, also in the snapshot."""
    proxy = await proxies(service.base_url)
    proxy.segment = segment
    hand = await start(service.store, "text")
    live = await service.follow(hand.run_id).open(on=proxy.http)
    await write_texts(hand, texts)
    assert await live.until_end(timeout=30) == "clean"
    replayed = await service.follow(hand.run_id).open(on=proxy.http)
    assert await replayed.until_end(timeout=30) == "clean"
    for follower in (live, replayed):
        follower.check(1, len(texts) + 5)
        assert [e["payload"]["text"] for e in follower.events if e["type"] == "message.delta"] == texts
        assert "\ufffd".encode() not in follower.stream.raw
    messages = (await service.client.get(f"/agent-runs/{hand.run_id}")).json()["messages"]
    assert messages[0]["content"] == [{"type": "text", "text": "".join(texts)}]


agents = Agents()


@agents.agent("torn")
async def torn(run: Run) -> str:
    """Tries to append half a character in every way Python has."""
    refused = 0
    for kind, payload in (("step.done", {"text": "\ud83c"}), ("step.done", {"\udf0d": 1}), ("step.done", {"deep": [{"x": "a\ud800b"}]})):
        try:
            await run.emit(kind, payload)
        except Exception as error:
            assert getattr(error, "code", None) == "invalid_request", error
            refused += 1
    return str(refused)


async def test_half_a_character_is_refused_and_leaves_nothing(service: Service, workers: Workers) -> None:
    """A producer that cuts inside a character is told so; nothing half-written is in the log, and the run goes on."""
    await workers(agents)
    run_id = await new_run_id(service.client, "torn")
    assert (await ended(service.client, run_id))["outcome"] == "3"
    follower = await service.follow(run_id).open()
    await follower.until_end()
    assert follower.types == ["run.created", "run.started", "run.succeeded"]


@pytest.mark.parametrize("tail", [b"\xf0\x9f", b"\xff", b"\xed\xa0\x80", b"\xc0\xaf"], ids=repr)
async def test_a_body_that_is_not_utf8_is_refused(service: Service, tail: bytes) -> None:
    """A request whose text ends inside a character, or is overlong, creates nothing."""
    body = b'{"agent":"support","input":{"text":"x' + tail + b'"}}'
    response = await service.client.post("/agent-runs", content=body, headers={"content-type": "application/json"})
    check_problem(response, 422, "invalid_request")
    assert (await service.client.get("/agent-runs")).json()["runs"] == []

"""The three protocols, decoded chunk by chunk without any connection."""

import json

import pytest

from reattach.demo.model.endpoint import DIALECTS
from reattach.demo.model.failures import MalformedChunk
from reattach.demo.model.pieces import (
    ApprovalNeeded,
    ArgumentsDelta,
    Done,
    ModelFailed,
    Piece,
    ProviderTool,
    Reasoning,
    Text,
    ToolCallReady,
    ToolCallStarted,
    arguments_object,
)

from .said import ARGUMENTS, SAID, TEXT, dump

ODD = ["{", "null", "[]", '{"type": 7, "choices": 7}', '"text"', '{"choices":[{"delta":{"content":{}}}],"type":0}', "\ufeff{}"]
"""Chunks that are none, for any of the protocols."""

EVERY = pytest.mark.parametrize("api", sorted(SAID))


def decode(api: str, chunks: list[str]) -> list[Piece]:
    """All pieces of one answer."""
    decoder = DIALECTS[api].decoder()
    return [piece for chunk in chunks for piece in decoder.feed(chunk)] + decoder.end()


def chat_deltas(*deltas: object, finish: str | None = "tool_calls") -> list[str]:
    """A completion of bare deltas."""
    chunks = [dump({"choices": [{"index": 0, "delta": delta}]}) for delta in deltas]
    return [*chunks, dump({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})]


@EVERY
def test_everything_an_answer_can_hold(api: str) -> None:
    """Reasoning, text and a tool call come out as the same pieces from every protocol, in order."""
    pieces = decode(api, SAID[api](TEXT, ("call_1", "tickets_read", ARGUMENTS), thoughts=("First", " think")))
    assert [p.text for p in pieces if isinstance(p, Reasoning)] == ["First", " think"]
    assert [p.text for p in pieces if isinstance(p, Text)] == TEXT
    assert [p for p in pieces if isinstance(p, ToolCallStarted)] == [ToolCallStarted("call_1", "tickets_read")]
    assert [p.text for p in pieces if isinstance(p, ArgumentsDelta)] == ARGUMENTS
    assert [p for p in pieces if isinstance(p, ToolCallReady)] == [ToolCallReady("call_1", "tickets_read", "".join(ARGUMENTS))]
    assert isinstance(pieces[-1], Done)
    assert not [p for p in pieces if isinstance(p, ModelFailed)]


@EVERY
def test_what_the_next_request_repeats(api: str) -> None:
    """The echo holds the text and the call, as JSON of the protocol's own form."""
    done = decode(api, SAID[api](TEXT, ("call_1", "tickets_read", ARGUMENTS)))[-1]
    assert isinstance(done, Done)
    whole = json.dumps([json.loads(item) for item in done.echo], ensure_ascii=False)
    assert json.dumps("".join(TEXT), ensure_ascii=False)[1:-1] in whole
    assert "call_1" in whole and "tickets_read" in whole


@EVERY
def test_a_stream_that_ends_too_early(api: str) -> None:
    """Wherever it is cut, an unfinished turn ends with a failure and never with a whole one."""
    chunks = SAID[api](TEXT, ("call_1", "tickets_read", ARGUMENTS))
    last = {"chat": 3, "responses": 1, "messages": 1}[api]
    for end in range(len(chunks) - last + 1):
        assert isinstance(decode(api, chunks[:end])[-1], ModelFailed), end


@EVERY
@pytest.mark.parametrize(
    "chunk", ["{", "null", "[]", '{"type": 7, "choices": 7}', '"text"', '{"choices":[{"delta":{"content":{}}}],"type":0}', "\ufeff{}"]
)
def test_a_chunk_that_is_none(api: str, chunk: str) -> None:
    """What is not a chunk of the protocol is a typed error of the decoder, whatever it is."""
    with pytest.raises(MalformedChunk):
        decode(api, [chunk])


@EVERY
def test_chunks_of_the_future(api: str) -> None:
    """Types and members that the decoder does not know are passed over."""
    chunks = SAID[api](["Hi"])
    new = dump({"type": "response.hologram.delta", "delta": {"x": 1}, "output_index": 0, "choices": [], "new": [1]})
    assert [p.text for p in decode(api, [new, *chunks[:-1], new, chunks[-1]]) if isinstance(p, Text)] == ["Hi"]


@EVERY
@pytest.mark.parametrize(("finish", "expected"), [("length", "length"), ("content_filter", "content_filter")])
def test_why_the_model_stopped(api: str, finish: str, expected: str) -> None:
    """The provider's own reason is kept."""
    done = decode(api, SAID[api](["Hi"], finish=finish))[-1]
    assert isinstance(done, Done) and done.reason == expected


@pytest.mark.parametrize(
    ("api", "chunk", "code"),
    [
        ("chat", {"error": {"message": "secret detail", "code": 503}}, "overloaded"),
        ("chat", {"error": "secret detail"}, "failed"),
        ("chat", {"error": {"type": "rate_limit_exceeded"}}, "rate_limited"),
        ("responses", {"type": "error", "code": "server_error", "message": "secret detail"}, "overloaded"),
        ("responses", {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}}, "rate_limited"),
        ("responses", {"type": "error", "error": {"type": "invalid_request_error", "message": "secret detail"}}, "failed"),
        ("messages", {"type": "error", "error": {"type": "overloaded_error", "message": "secret detail"}}, "overloaded"),
        ("messages", {"type": "error"}, "failed"),
        ("messages", {"type": "error", "error": {"type": "secret detail!"}}, "failed"),
    ],
)
def test_an_error_in_the_stream(api: str, chunk: dict[str, object], code: str) -> None:
    """A provider's error becomes a failure of a known kind that shows its short code at most."""
    failed = decode(api, [dump(chunk)])[0]
    assert isinstance(failed, ModelFailed)
    assert failed.code == code
    assert "secret" not in failed.message


def test_chat_calls_by_index() -> None:
    """Two calls whose arguments come in turns are kept apart by their index."""
    first = {"index": 0, "id": "a", "function": {"name": "x", "arguments": '{"n"'}}
    second = {"index": 1, "id": "b", "function": {"name": "y", "arguments": '{"m"'}}
    rest = [{"index": 1, "function": {"arguments": ":2}"}}, {"index": 0, "function": {"arguments": ":1}"}}]
    pieces = decode("chat", chat_deltas({"tool_calls": [first, second]}, *({"tool_calls": [part]} for part in rest)))
    ready = [p for p in pieces if isinstance(p, ToolCallReady)]
    assert ready == [ToolCallReady("a", "x", '{"n":1}'), ToolCallReady("b", "y", '{"m":2}')]


@pytest.mark.parametrize("index", [{"index": 0}, {}, {"index": None}])
def test_chat_calls_without_a_useful_index(index: dict[str, object]) -> None:
    """Where all calls have the same index or none, an id that comes with a name begins another one."""
    calls = [{**index, "id": i, "function": {"name": i, "arguments": f'{{"of":"{i}"}}'}} for i in "ab"]
    ready = [p for p in decode("chat", chat_deltas(*({"tool_calls": [call]} for call in calls))) if isinstance(p, ToolCallReady)]
    assert ready == [ToolCallReady("a", "a", '{"of":"a"}'), ToolCallReady("b", "b", '{"of":"b"}')]


def test_chat_calls_with_a_new_id_for_every_piece() -> None:
    """A provider that makes up ids as it goes still has one call under the first of them."""
    parts = [{"index": 0, "id": "a", "function": {"name": "x", "arguments": "{"}}, {"index": 0, "id": "b", "function": {"arguments": "}"}}]
    ready = [p for p in decode("chat", chat_deltas(*({"tool_calls": [part]} for part in parts))) if isinstance(p, ToolCallReady)]
    assert ready == [ToolCallReady("a", "x", "{}")]


def test_chat_arguments_as_an_object() -> None:
    """Arguments that come as an object instead of text are read all the same, and a call without an id gets one."""
    call = {"function": {"name": "x", "arguments": {"n": 1}}}
    ready = [p for p in decode("chat", chat_deltas({"tool_calls": [call]})) if isinstance(p, ToolCallReady)]
    assert ready == [ToolCallReady("call_0", "x", '{"n":1}')]


@pytest.mark.parametrize("names", [("reasoning",), ("reasoning_content",), ("reasoning", "reasoning_content")])
def test_chat_reasoning_under_any_name(names: tuple[str, ...]) -> None:
    """The two names that providers have for reasoning mean the same, also when both are there."""
    pieces = decode("chat", chat_deltas({name: "hm" for name in names}, {"content": "ok"}, finish="stop"))
    assert pieces[:2] == [Reasoning("hm"), Text("ok")]


@pytest.mark.parametrize("ending", [["[DONE]"], [" [DONE] "], []])
def test_chat_ends_with_or_without_done(ending: list[str]) -> None:
    """A reason to stop is enough; the final word may be missing."""
    done = decode("chat", [*chat_deltas({"content": "ok"}, finish="stop"), *ending])
    assert [type(p) for p in done] == [Text, Done]


def test_responses_text_without_deltas() -> None:
    """A server that sends a text only when it is whole is understood, and one that sends both is not believed twice."""
    done = {"type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "whole"}
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "whole"}
    for chunks in ([done], [delta, done]):
        pieces = decode("responses", [*map(dump, chunks), dump({"type": "response.completed"})])
        assert [p for p in pieces if isinstance(p, Text)] == [Text("whole")]


def test_responses_items_only_at_the_end() -> None:
    """Calls that appear nowhere but in the completed response are carried out and repeated all the same."""
    call = {"type": "function_call", "call_id": "c", "name": "x", "arguments": "{}"}
    pieces = decode("responses", [dump({"type": "response.completed", "response": {"output": [call]}})])
    assert pieces == [ToolCallReady("c", "x", "{}"), Done("completed", (json.dumps(call, separators=(", ", ": ")),))]


def test_responses_approval() -> None:
    """A request for permission names what the answer must name."""
    item = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "shorten", "server_label": "zip", "arguments": '{"url":"x"}'}
    chunks = [{"type": "response.output_item.done", "output_index": 0, "item": item}, {"type": "response.completed"}]
    pieces = decode("responses", list(map(dump, chunks)))
    assert pieces[0] == ApprovalNeeded(request_id="mcpr_1", tool="shorten", server="zip", arguments='{"url":"x"}')


def test_responses_reasoning_parts_are_told_apart() -> None:
    """Between two parts of a summary there is a paragraph's end."""
    chunks: list[dict[str, object]] = []
    for index, text in enumerate(("one", "two")):
        chunks.append({"type": "response.reasoning_summary_part.added", "summary_index": index})
        chunks.append({"type": "response.reasoning_summary_text.delta", "summary_index": index, "delta": text})
    pieces = decode("responses", [*map(dump, chunks), dump({"type": "response.completed"})])
    assert "".join(p.text for p in pieces if isinstance(p, Reasoning)) == "one\n\ntwo"


def test_messages_bring_calls_along() -> None:
    """Calls that come whole with the start of a message, without any delta, are calls."""
    block = {"type": "tool_use", "id": "t", "name": "roll", "input": {"player": "a"}}
    start = {"type": "message_start", "message": {"content": [block], "stop_reason": "tool_use"}}
    pieces = decode("messages", [dump(start), dump({"type": "message_stop"})])
    assert [type(p) for p in pieces] == [ToolCallStarted, ToolCallReady, Done]
    assert arguments_object(pieces[1].arguments if isinstance(pieces[1], ToolCallReady) else "") == {"player": "a"}


def test_messages_provider_tools() -> None:
    """The provider's own tools are told with their arguments and their end, not taken for the agent's."""
    started: dict[str, object] = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"encrypted_content": "x" * 50_000}]}
    chunks: list[dict[str, object]] = [
        {"type": "message_start"},
        {"type": "content_block_start", "index": 0, "content_block": started},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"query":"x"}'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": result},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_stop"},
    ]
    pieces = decode("messages", list(map(dump, chunks)))
    told = [(p.status, p.arguments) for p in pieces if isinstance(p, ProviderTool)]
    assert told == [("started", None), ("arguments", None), ("requested", '{"query":"x"}'), ("completed", None)]
    assert not [p for p in pieces if isinstance(p, ToolCallReady)]


def test_messages_echo_leaves_out_what_a_request_must_not_have() -> None:
    """Empty text is not repeated, thinking is repeated with its signature, and unreadable arguments stay an object."""
    done = decode("messages", SAID["messages"]([""], ("t", "x", ['{"broken'])))[-1]
    assert isinstance(done, Done)
    assert [json.loads(block) for block in done.echo] == [{"type": "tool_use", "id": "t", "name": "x", "input": {"unreadable": '{"broken'}}]
    done = decode("messages", SAID["messages"](["a"], thoughts=("hm", " ok")))[-1]
    assert isinstance(done, Done)
    assert json.loads(done.echo[0]) == {"type": "thinking", "thinking": "hm ok", "signature": "c2ln"}


@pytest.mark.parametrize(("text", "expected"), [("", {}), ("{}", {}), ('{"a":1}', {"a": 1}), ("[]", None), ("{", None), ("null", None)])
def test_arguments(text: str, expected: dict[str, object] | None) -> None:
    """Arguments are an object or they are not arguments; none at all is an empty object."""
    assert arguments_object(text) == expected

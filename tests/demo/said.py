"""Small answers of models, one per protocol, written by hand: some text, one tool call, a last word."""

import json
from typing import Any

TEXT = ["Let", " me", " look", " — naïve", " 🎲", " a\u2028b", "."]
"""Pieces of text; the joined text has characters of two to four bytes and a line separator that is not a line's end."""

ARGUMENTS = ['{"tick', 'et": 9', "81}"]


def dump(value: Any) -> str:
    """JSON as providers send it, without escapes."""
    return json.dumps(value, ensure_ascii=False)


def chat(text: list[str], call: tuple[str, str, list[str]] | None = None, *, thoughts: tuple[str, ...] = (), finish: str = "") -> list[str]:
    """A streamed completion."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": thought} for thought in thoughts]
    deltas += [{"content": piece} for piece in text]
    if call is not None:
        call_id, name, arguments = call
        deltas.append({"tool_calls": [{"index": 0, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}]})
        deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in arguments]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish or ("tool_calls" if call else "stop")}]})
    chunks.append({"choices": [], "usage": {"total_tokens": 12}})
    return [*map(dump, chunks), "[DONE]"]


def responses(
    text: list[str], call: tuple[str, str, list[str]] | None = None, *, thoughts: tuple[str, ...] = (), finish: str = ""
) -> list[str]:
    """A streamed response."""
    chunks: list[dict[str, Any]] = [{"type": "response.created", "response": {"output": []}}]
    index = 0
    if thoughts:
        item: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": []}
        chunks.append({"type": "response.output_item.added", "output_index": index, "item": item})
        chunks += [{"type": "response.reasoning_summary_text.delta", "output_index": index, "delta": t} for t in thoughts]
        chunks.append({"type": "response.output_item.done", "output_index": index, "item": item})
        index += 1
    if text:
        content: list[dict[str, Any]] = [{"type": "output_text", "text": "".join(text), "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
        chunks.append({"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}})
        chunks += [{"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": t} for t in text]
        chunks.append({"type": "response.output_text.done", "output_index": index, "content_index": 0, "text": "".join(text)})
        chunks.append({"type": "response.output_item.done", "output_index": index, "item": item})
        index += 1
    if call is not None:
        call_id, name, arguments = call
        item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": ""}
        chunks.append({"type": "response.output_item.added", "output_index": index, "item": item})
        chunks += [{"type": "response.function_call_arguments.delta", "output_index": index, "delta": a} for a in arguments]
        chunks.append({"type": "response.output_item.done", "output_index": index, "item": {**item, "arguments": "".join(arguments)}})
    ending: dict[str, Any] = {"type": "response.completed", "response": {"output": []}}
    if finish:
        ending = {"type": "response.incomplete", "response": {"output": [], "incomplete_details": {"reason": finish}}}
    return [*map(dump, chunks), dump(ending)]


def messages(
    text: list[str], call: tuple[str, str, list[str]] | None = None, *, thoughts: tuple[str, ...] = (), finish: str = ""
) -> list[str]:
    """A streamed message."""
    chunks: list[dict[str, Any]] = [{"type": "message_start", "message": {"content": [], "stop_reason": None}}, {"type": "ping"}]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if thoughts:
        thinking = [{"type": "thinking_delta", "thinking": t} for t in thoughts]
        blocks.append(({"type": "thinking", "thinking": ""}, [*thinking, {"type": "signature_delta", "signature": "c2ln"}]))
    if text:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": t} for t in text]))
    if call is not None:
        call_id, name, arguments = call
        start: dict[str, Any] = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        blocks.append((start, [{"type": "input_json_delta", "partial_json": a} for a in ["", *arguments]]))
    for index, (start, deltas) in enumerate(blocks):
        chunks.append({"type": "content_block_start", "index": index, "content_block": start})
        chunks += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        chunks.append({"type": "content_block_stop", "index": index})
    reason = finish or ("tool_use" if call else "end_turn")
    chunks += [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}}, {"type": "message_stop"}]
    return [dump(chunk) for chunk in chunks]


SAID = {"chat": chat, "responses": responses, "messages": messages}
"""By the name of the protocol."""

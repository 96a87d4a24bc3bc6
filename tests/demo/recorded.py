"""What a recorded stream says, read off its lines in the plainest way, so that a decoder can be held against it."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

OWN = ("message", "reasoning", "mcp_approval_request", "function_call")
"""Kinds of items of a response that are not a tool of the provider."""


@dataclass(frozen=True)
class Recording:
    """One recording.

    Attributes:
        name: Its file's, without the ending.
        lines: One chunk each.
    """

    name: str
    lines: list[str]

    @property
    def api(self) -> str:
        """The protocol it was recorded from."""
        if self.name.startswith("anthropic"):
            return "messages"
        return "responses" if self.name.startswith("openai-responses") else "chat"

    @cached_property
    def chunks(self) -> list[dict[str, Any]]:
        """The lines, decoded."""
        return [json.loads(line) for line in self.lines]

    def turns(self) -> list[list[str]]:
        """The lines of each answer, where several were recorded one after the other."""
        found: list[list[str]] = []
        for line, chunk in zip(self.lines, self.chunks, strict=True):
            if not found or chunk.get("type") in ("message_start", "response.created"):
                found.append([])
            found[-1].append(line)
        return found

    def _deltas(self) -> list[dict[str, Any]]:
        return [choice["delta"] for chunk in self.chunks for choice in chunk.get("choices", ())]

    @property
    def text(self) -> list[str]:
        """The pieces of text."""
        if self.api == "chat":
            pieces = [delta.get("content") for delta in self._deltas()]
        elif self.api == "responses":
            pieces = [chunk["delta"] for chunk in self.chunks if chunk["type"] == "response.output_text.delta"]
        else:
            pieces = [chunk["delta"]["text"] for chunk in self.chunks if chunk.get("delta", {}).get("type") == "text_delta"]
        return [piece for piece in pieces if piece]

    @property
    def reasoning(self) -> list[str]:
        """The pieces of reasoning."""
        return [piece for delta in self._deltas() if (piece := delta.get("reasoning_content"))]

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        """Calls of the agent's tools: id, name, arguments."""
        return self._chat_calls() if self.api == "chat" else self._blocks("tool_use")

    def _chat_calls(self) -> list[tuple[str, str, Any]]:
        parts = [part for delta in self._deltas() for part in delta.get("tool_calls", ())]
        if not parts:
            return []
        arguments = "".join(part["function"]["arguments"] for part in parts)
        return [(parts[0]["id"], parts[0]["function"]["name"], json.loads(arguments))]

    def _blocks(self, kind: str) -> list[tuple[str, str, Any]]:
        found: list[tuple[str, str, Any]] = []
        for chunk in self.chunks:
            started = [chunk["content_block"]] if chunk["type"] == "content_block_start" else chunk.get("message", {}).get("content", [])
            found += [(block["id"], block["name"], block["input"]) for block in started if block["type"] == kind]
        return found

    @property
    def provided(self) -> set[str]:
        """Ids of what the provider did by itself and ended."""
        if self.api == "responses":
            items = [chunk["item"] for chunk in self.chunks if chunk["type"] == "response.output_item.done"]
            return {item.get("call_id") or item["id"] for item in items if item["type"] not in OWN}
        blocks = [chunk["content_block"] for chunk in self.chunks if chunk.get("type") == "content_block_start"]
        return {block["tool_use_id"] for block in blocks if block["type"].endswith("_tool_result")}

    @property
    def provided_pieces(self) -> list[str]:
        """Pieces of what the provider's tools were given."""
        if self.api == "responses":
            kinds = ("response.code_interpreter_call_code.delta", "response.shell_call_command.delta")
            return [chunk["delta"] for chunk in self.chunks if chunk["type"] in kinds]
        return [chunk["delta"]["partial_json"] for chunk in self.chunks if chunk.get("delta", {}).get("type") == "input_json_delta"]

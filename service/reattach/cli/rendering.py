"""A run's events for a person at a terminal: text as it is written, everything else as one line each."""

from typing import Any, cast

import msgspec

from .console import STATE_COLOURS, clean, compact, paint, write

Payload = dict[str, Any]


class Screen:
    """Shows one run's events, in order. Payloads are a product's own: whatever their shape, something sensible is shown."""

    def __init__(self) -> None:
        """Start with an empty screen."""
        self._written: dict[str, str] = {}
        self._open: str | None = None
        self._at_start = True

    def show(self, data: bytes) -> None:
        """Show one event, given as JSON."""
        event: Payload = msgspec.json.decode(data)
        kind, payload = str(event["type"]), cast(Payload, event["payload"])
        area, _, what = kind.partition(".")
        if kind in ("message.delta", "reasoning.delta"):
            name = _text(payload, "message_id")
            self._stream(f"{area} {name}", _text(payload, "text"), label="reasoning" if area == "reasoning" else "message")
        elif kind in ("message.started", "message.checkpoint", "message.completed"):
            self._catch_up(f"message {_text(payload, 'message_id')}", _whole(payload), done=what == "completed")
        elif area == "run":
            self._line(event["sequence"], what, _run(what, payload), STATE_COLOURS.get(_state(what)))
        elif area == "tool":
            self._line(event["sequence"], f"tool {what}", _tool(payload), "red" if what in ("failed", "unresolved") else "cyan")
        else:
            self._line(event["sequence"], kind, compact(payload), None)

    def finish(self) -> None:
        """Leave the cursor at the start of a line."""
        self._end_line()

    def _stream(self, name: str, text: str, *, label: str) -> None:
        if self._open != name:
            self._end_line()
            write(f"{paint(f'{label:>16}', dim=True)}  ")
            self._open, self._at_start = name, False
        self._written[name] = self._written.get(name, "") + text
        # Lines after the first stand under it.
        shown = clean(text).replace("\n", "\n" + " " * 18)
        write(paint(shown, dim=True) if label == "reasoning" else shown)

    def _catch_up(self, name: str, text: str, *, done: bool) -> None:
        """Show what of a message's text so far was not streamed, e.g. because its deltas are not kept any more."""
        before = self._written.get(name, "")
        if text.startswith(before):
            rest = text[len(before) :]
        else:
            self._end_line()
            rest = text
        if rest:
            self._stream(name, rest, label="message")
        if done:
            self._written.pop(name, None)
            self._end_line()

    def _line(self, sequence: Any, label: str, text: str, colour: str | None) -> None:
        self._end_line()
        write(f"{paint(f'{sequence:>5}', dim=True)}  {paint(f'{clean(label):<15}', colour)}  {clean(text)}".rstrip() + "\n")

    def _end_line(self) -> None:
        if not self._at_start:
            write("\n")
        self._open, self._at_start = None, True


def _text(payload: Payload, name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else "" if value is None else compact(value)


def _whole(payload: Payload) -> str:
    """A message's text so far, from a checkpoint's ``text`` or from ``content``."""
    content = payload.get("content")
    if not isinstance(content, list):
        return _text(payload, "text")
    parts = [cast(Payload, part) for part in cast(list[Any], content) if isinstance(part, dict)]
    return "".join(_text(part, "text") if part.get("type") == "text" else compact(part) for part in parts)


def _state(what: str) -> str:
    return {"created": "queued", "retrying": "queued", "started": "running", "resumed": "running", "cancel_requested": "cancelled"}.get(
        what, what
    )


def _run(what: str, payload: Payload) -> str:
    match what:
        case "succeeded":
            return compact(payload.get("outcome"))
        case "failed":
            return compact(payload.get("error"))
        case "cancelled":
            return _text(payload, "disposition").replace("_", " ")
        case "waiting":
            return " ".join(filter(None, [_text(payload, "prompt") or _text(payload, "reason"), f"(wait_id {_text(payload, 'wait_id')})"]))
        case _:
            return ", ".join(f"{name} {_text(payload, name)}" for name in payload)


def _tool(payload: Payload) -> str:
    words = [_text(payload, "tool")]
    words += [compact(payload[name]) for name in ("arguments", "result", "error", "why") if payload.get(name) is not None]
    words += [_text(payload, name) for name in ("receipt_id", "result_version") if payload.get(name) is not None]
    return "  ".join(words)

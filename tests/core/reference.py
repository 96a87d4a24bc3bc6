"""The fold once more, in the plainest way: from snapshot to snapshot, on parsed JSON, with nothing remembered in between.

That is what a browser does that has a snapshot and follows from there. It is slow, rounds nothing it can avoid to, and shares no code with
the package; where both agree at every event, a snapshot is all the state there is.
"""

from typing import Any

Json = dict[str, Any]


def begin(constants: Json) -> Json:
    """The snapshot before the first event; `constants` has the members that no event changes, and ``retention`` in milliseconds."""
    return constants | {
        "state": "queued", "attempt": 0, "sequence": 0, "waiting": None, "outcome": None, "error": None,
        "created_at": None, "started_at": None, "last_activity_at": None, "finished_at": None,
        "messages": [], "tools": [], "resources": {}, "unresolved": [],
        "cancel": {"version": 0, "requested_at": None, "by": None, "reason": None, "disposition": None},
    }  # fmt: skip


def fits(payload: Json, required: dict[str, type], optional: dict[str, type]) -> bool:
    """Whether the members that are looked at have the types that the contract says; optional ones may be null."""
    return all(type(payload.get(name)) is kind for name, kind in required.items()) and all(
        payload.get(name) is None or type(payload[name]) is kind for name, kind in optional.items()
    )


def find(items: list[Json], key: str, value: str) -> Json | None:
    """The item with this id."""
    return next((item for item in items if item[key] == value), None)


def is_plain(part: Any) -> bool:
    """Whether a part is text and nothing else."""
    return type(part) is dict and part == {"type": "text", "text": part.get("text")} and type(part["text"]) is str  # pyright: ignore


def grow(content: list[Any], more: str, *, replace: bool) -> None:
    """Add text to the last part if that is plain text, else as a new part; `replace` drops that part's text first."""
    plain = bool(content) and is_plain(content[-1])
    if replace and plain:
        content.pop()
        plain = False
    if more and plain:
        content[-1]["text"] += more
    elif more:
        content.append({"type": "text", "text": more})


def message(snapshot: Json, kind: str, payload: Json) -> None:
    """``message.*``."""
    texts = kind in ("delta", "checkpoint")
    required: dict[str, type] = {"message_id": str} | ({"text": str} if texts else {}) | ({"content": list} if kind == "completed" else {})
    optional: dict[str, type] = {} if texts else {"role": str} | ({"status": str} if kind == "completed" else {})
    if not fits(payload, required, optional) or (kind == "started" and type(payload.get("content", [])) is not list):
        return
    found: Json | None = find(snapshot["messages"], "message_id", payload["message_id"])
    if texts and found and found["status"] == "completed":
        return
    if found is None:
        found = {"message_id": payload["message_id"], "role": "assistant", "status": "streaming", "content": []}
        snapshot["messages"].append(found)
    found["status"] = "streaming"
    if texts:
        grow(found["content"], payload["text"], replace=kind == "checkpoint")
    else:
        found["content"] = payload.get("content", [])
        found["role"] = payload.get("role") or (found["role"] if kind == "completed" else "assistant")
    if kind == "completed":
        found["status"] = "interrupted" if payload.get("status") == "interrupted" else "completed"


def tool(snapshot: Json, kind: str, payload: Json, at: str) -> None:
    """``tool.*``."""
    optional: dict[str, type] = {} if kind == "requested" else {"receipt_id": str, "result_version": str, "why": str}
    if not fits(payload, {"tool_call_id": str, "tool": str}, optional):
        return
    call: Json = {"tool_call_id": payload["tool_call_id"], "tool": payload["tool"], "status": kind}
    found = find(snapshot["tools"], "tool_call_id", payload["tool_call_id"])
    if kind == "requested":
        call |= {"requested_at": at} | {name: payload[name] for name in ("arguments",) if name in payload}
    else:
        call |= {name: found[name] for name in ("requested_at", "arguments") if found and name in found}
        call |= {name: payload[name] for name in ("receipt_id", "result_version", "why") if payload.get(name) is not None}
        call |= {name: payload[name] for name in ("result", "error") if name in payload}
        call |= {} if kind == "unresolved" else {"finished_at": at}
    if found is None:
        snapshot["tools"].append(call)
    else:
        found.clear()
        found.update(call)
    resource, _, version = (call.get("result_version") or "").rpartition(":")
    if kind == "completed" and resource and version:
        snapshot["resources"][resource] = version
    snapshot["unresolved"] = [
        {"tool_call_id": c["tool_call_id"], "tool": c["tool"], "why": c.get("why") or "unknown"}
        for c in snapshot["tools"]
        if c["status"] == "unresolved"
    ]


def interrupt(snapshot: Json) -> None:
    """Nobody goes on with the open messages."""
    for item in snapshot["messages"]:
        if item["status"] == "streaming":
            item["status"] = "interrupted"


def end(snapshot: Json, kind: str, payload: Json, at: str, until: dict[str, str]) -> None:
    """``run.succeeded``, ``run.failed``, ``run.cancelled``; `until` says when events and record go."""
    snapshot |= {"state": kind, "waiting": None, "finished_at": at} | until
    interrupt(snapshot)
    if kind == "cancelled":
        snapshot["cancel"]["disposition"] = payload.get("disposition")
        return
    snapshot["outcome" if kind == "succeeded" else "error"] = payload.get("outcome" if kind == "succeeded" else "error")
    if snapshot["cancel"]["version"]:
        snapshot["cancel"]["disposition"] = "already_terminal"


def run(snapshot: Json, kind: str, payload: Json, at: str, until: dict[str, str]) -> None:
    """``run.*``; only the store writes these, so their payloads are as documented."""
    if kind == "created":
        snapshot["created_at"] = at
    elif kind in ("started", "resumed"):
        snapshot |= {"state": "running", "waiting": None, "attempt": payload["attempt"], "started_at": snapshot["started_at"] or at}
    elif kind == "retrying":
        snapshot |= {"state": "queued", "waiting": None, "attempt": payload["attempt"]}
        interrupt(snapshot)
    elif kind == "waiting":
        names = ("reason", "wait_id", "expires_at", "prompt")
        snapshot |= {"state": "waiting", "waiting": {name: payload.get(name) for name in names} | {"since": at}}
    elif kind == "cancel_requested":
        about = {name: payload.get(name) for name in ("by", "reason")}
        about |= {"version": payload["cancel_version"], "requested_at": at, "disposition": "cancellation_pending"}
        snapshot["cancel"] = about
    elif kind in ("succeeded", "failed", "cancelled"):
        end(snapshot, kind, payload, at, until)


def step(snapshot: Json, event: Json, until: dict[str, str]) -> None:
    """One event, as a client receives it, into a snapshot. `until`: see `end`; used only where the event ends the run."""
    family, _, kind = event["type"].partition(".")
    payload, at = event["payload"], event["occurred_at"]
    if family == "message" and kind in ("started", "delta", "checkpoint", "completed"):
        message(snapshot, kind, payload)
    elif family == "tool" and kind in ("requested", "completed", "failed", "unresolved"):
        tool(snapshot, kind, payload, at)
    elif family == "run":
        run(snapshot, kind, payload, at, until)
    elif event["type"] == "input.received":
        snapshot |= {"state": "queued", "waiting": None}
    snapshot |= {"sequence": event["sequence"], "last_activity_at": at}

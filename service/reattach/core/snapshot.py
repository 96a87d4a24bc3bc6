"""The snapshot's shape (contract, section 9). ``core.fold`` computes it."""

import msgspec

from .run import Cancel, Waiting

Raw = msgspec.Raw


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message as far as it was written."""

    message_id: str
    role: str
    status: str
    content: Raw


class Tool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool call and what is known of its effect."""

    tool_call_id: str
    tool: str
    status: str
    requested_at: str | None = None
    finished_at: str | None = None
    arguments: Raw | None = None
    receipt_id: str | None = None
    result_version: str | None = None
    result: Raw | None = None
    error: Raw | None = None
    why: str | None = None


class Unresolved(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call of which nobody knows whether it took effect."""

    tool_call_id: str
    tool: str
    why: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one sequence: the fold of its events 1 … `sequence`, joined with the constants of its record."""

    run_id: str
    tenant: str
    initiator: str
    session_id: str | None
    parent_run_id: str | None
    agent: str
    resource_scope: str
    release_id: str
    model_policy: str | None
    tool_catalog: str | None
    input_version: str | None
    input: Raw
    metadata: Raw
    state: str
    attempt: int
    sequence: int
    earliest_sequence: int
    cancel: Cancel
    waiting: Waiting | None
    outcome: Raw | None
    error: Raw | None
    created_at: str
    started_at: str | None
    last_activity_at: str
    finished_at: str | None
    events_expire_at: str | None
    expires_at: str | None
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    resources: dict[str, str]
    unresolved: tuple[Unresolved, ...]
    links: dict[str, str]

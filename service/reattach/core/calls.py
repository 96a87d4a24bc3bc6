"""The tool calls of a run and the resources they changed, folded from its ``tool.*`` events."""

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from .projections import ABSENT, ToolRequested, ToolSettled, given
from .snapshot import Tool, Unresolved
from .times import rfc3339


class Call(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One tool call as it is folded and stored; times are milliseconds on the server's clock."""

    tool_call_id: str
    tool: str
    status: str
    requested_at: int | None = None
    finished_at: int | None = None
    arguments: Raw = ABSENT
    receipt_id: str | None = None
    result_version: str | None = None
    result: Raw = ABSENT
    error: Raw = ABSENT
    why: str | None = None

    def view(self) -> Tool:
        """The call as a snapshot shows it."""
        return Tool(
            tool_call_id=self.tool_call_id,
            tool=self.tool,
            status=self.status,
            requested_at=None if self.requested_at is None else rfc3339(self.requested_at),
            finished_at=None if self.finished_at is None else rfc3339(self.finished_at),
            arguments=given(self.arguments),
            receipt_id=self.receipt_id,
            result_version=self.result_version,
            result=given(self.result),
            error=given(self.error),
            why=self.why,
        )


class Calls:
    """The tool calls of one run, in the order in which they were first named."""

    def __init__(self, calls: Iterable[Call] = (), resources: dict[str, str] | None = None) -> None:
        """Continue from what was stored."""
        self._calls = {call.tool_call_id: call for call in calls}
        self.resources = resources or {}

    def entries(self) -> list[Call]:
        """All calls, to be stored."""
        return list(self._calls.values())

    def view(self) -> tuple[Tool, ...]:
        """All calls as a snapshot shows them."""
        return tuple(call.view() for call in self._calls.values())

    def unresolved(self) -> tuple[Unresolved, ...]:
        """The calls of which nobody knows whether they took effect."""
        return tuple(
            Unresolved(tool_call_id=call.tool_call_id, tool=call.tool, why=call.why or "unknown")
            for call in self._calls.values()
            if call.status == "unresolved"
        )

    def request(self, p: ToolRequested, at: int) -> None:
        """A call begins, or is tried again."""
        self._calls[p.tool_call_id] = Call(
            tool_call_id=p.tool_call_id, tool=p.tool, status="requested", requested_at=at, arguments=p.arguments
        )

    def settle(self, p: ToolSettled, status: str, at: int) -> None:
        """What became of a call: completed, failed or unresolved. A resource keeps the version that was reported last."""
        before = self._calls.get(p.tool_call_id)
        self._calls[p.tool_call_id] = Call(
            tool_call_id=p.tool_call_id,
            tool=p.tool,
            status=status,
            requested_at=before.requested_at if before else None,
            finished_at=None if status == "unresolved" else at,
            arguments=before.arguments if before else ABSENT,
            receipt_id=p.receipt_id,
            result_version=p.result_version,
            result=p.result,
            error=p.error,
            why=p.why,
        )
        resource, _, version = (p.result_version or "").rpartition(":")
        if status == "completed" and resource and version:
            self.resources[resource] = version

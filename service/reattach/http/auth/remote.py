"""A policy somewhere else: each question is posted to an address, which answers ``{"allow": true}`` or ``{"allow": false}``.

It fails closed. No answer in time, another status than 200, or anything else in the body: whoever asked is told to come again, and nothing
is done. Answers count for a few seconds, so that a page of a listing or a thousand viewers of one run are not a thousand questions.
"""

import asyncio
from collections import OrderedDict
from typing import Final
from urllib.parse import urlsplit

import httpx
import msgspec
import structlog

from ...core.errors import AuthUnavailable, InvalidRequest
from ...core.run import RunRecord
from ...obs.metrics import POLICY_QUESTIONS
from .hosts import is_loopback
from .principal import Action, Principal

_log = structlog.get_logger("reattach.auth")

AT_ONCE: Final = 32
MOST_WAITING: Final = 2000
MOST_ANSWERS: Final = 20_000
MAX_ANSWER: Final = 16 * 1024


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks."""

    tenant: str
    subject: str
    scopes: tuple[str, ...]
    ticket: bool


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The run that it is about; `run_id` is empty while it is only to be created."""

    run_id: str
    tenant: str
    initiator: str
    agent: str
    session_id: str | None
    parent_run_id: str | None
    resource_scope: str
    release_id: str
    state: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is posted. `resource_scope` is what it is about: the run's own, or that of one of its events."""

    principal: Caller
    action: str
    resource_scope: str | None
    run: RunFacts | None


class _Answer(msgspec.Struct, frozen=True):
    allow: bool


_answer: Final = msgspec.json.Decoder(_Answer)


class RemotePolicy:
    """An authorizer that asks an address."""

    def __init__(self, url: str, *, timeout: float, keep: float) -> None:
        """Prepare; nothing is asked yet.

        Args:
            url: Where to. A user and password in it are sent as basic authentication.
            timeout: Longest wait for an answer, seconds.
            keep: How long an answer counts, seconds.

        Raises:
            InvalidRequest: It is no address that may decide: not https, unless it is this machine's.
        """
        local = _check(url)
        self._url, self._timeout, self._keep = url, timeout, keep
        limits = httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
        # Redirects are not followed: who decides is the operator's decision. A proxy has no business between this machine and itself.
        self._client = httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=not local)
        self._clock = asyncio.get_running_loop().time
        self._room = asyncio.Semaphore(AT_ONCE)
        self._answers: OrderedDict[bytes, tuple[float, bool]] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[bool]] = {}
        self._well = True

    async def close(self) -> None:
        """Ask no more."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await self._client.aclose()

    async def may(self, principal: Principal, action: Action, record: RunRecord | None) -> bool:
        """What the address says.

        Raises:
            AuthUnavailable: It does not say.
        """
        return await self._ask(principal, action, record, None if record is None else record.resource_scope)

    async def may_see(self, principal: Principal, record: RunRecord, scope: str) -> bool:
        """What the address says of events about something else than their run.

        Raises:
            AuthUnavailable: It does not say.
        """
        return await self._ask(principal, "read", record, scope)

    async def _ask(self, principal: Principal, action: str, record: RunRecord | None, scope: str | None) -> bool:
        question = msgspec.json.encode(_question(principal, action, record, scope))
        known = self._answers.get(question)
        if known is not None and self._clock() < known[0]:
            return known[1]
        task = self._asking.get(question)
        if task is None:
            if len(self._asking) >= MOST_WAITING:
                raise AuthUnavailable("more is asked of the policy than it answers", retry_after=1.0)
            task = self._asking[question] = asyncio.create_task(self._decide(question), name="reattach-policy")
            task.add_done_callback(lambda done: self._decided(question, done))
        # Others may wait for the same answer: whoever leaves does not take it from them.
        return await asyncio.shield(task)

    def _decided(self, question: bytes, task: "asyncio.Task[bool]") -> None:
        del self._asking[question]
        if task.cancelled() or task.exception() is not None:
            return
        self._answers[question] = (self._clock() + self._keep, task.result())
        self._answers.move_to_end(question)
        while len(self._answers) > MOST_ANSWERS:
            self._answers.popitem(last=False)

    async def _decide(self, question: bytes) -> bool:
        try:
            async with asyncio.timeout(self._timeout), self._room:
                allowed = await self._post(question)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, msgspec.DecodeError, ValueError) as e:
            POLICY_QUESTIONS.labels("failed").inc()
            if self._well:
                _log.warning("auth.policy_unavailable", why=type(e).__name__ if not isinstance(e, _Unusable) else str(e))
            self._well = False
            raise AuthUnavailable("whether this is allowed cannot be found out now", retry_after=1.0) from None
        if not self._well:
            _log.info("auth.policy_available")
        self._well = True
        POLICY_QUESTIONS.labels("allowed" if allowed else "refused").inc()
        return allowed

    async def _post(self, question: bytes) -> bool:
        headers = {"content-type": "application/json", "accept": "application/json"}
        async with self._client.stream("POST", self._url, content=question, headers=headers) as response:
            if response.status_code != 200:
                raise _Unusable(f"it answers with {response.status_code}")
            raw = bytearray()
            async for chunk in response.aiter_bytes():
                raw += chunk
                if len(raw) > MAX_ANSWER:
                    raise _Unusable(f"it answers with more than {MAX_ANSWER} bytes")
        return _answer.decode(bytes(raw)).allow


class _Unusable(ValueError):
    """An answer that is none."""


def _question(principal: Principal, action: str, record: RunRecord | None, scope: str | None) -> Question:
    caller = Caller(
        tenant=principal.tenant, subject=principal.subject, scopes=tuple(sorted(principal.scopes)), ticket=principal.run_id is not None
    )
    about = None
    if record is not None:
        about = RunFacts(**{name: getattr(record, name) for name in RunFacts.__struct_fields__})
    return Question(principal=caller, action=action, resource_scope=scope or None, run=about)


def _check(url: str) -> bool:
    """Whether a policy's address is on this machine.

    Raises:
        InvalidRequest: It is none that may decide.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    if not host or parts.scheme not in ("http", "https"):
        raise InvalidRequest("a policy is an https:// address, or MODULE:CLASS", field="policy")
    if parts.scheme == "http" and not is_loopback(host):
        raise InvalidRequest(
            "a policy's address begins with https://: over http:// anybody on the way could allow everything", field="policy"
        )
    return is_loopback(host)

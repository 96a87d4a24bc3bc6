"""Those who ask for runs, look at them, answer them and stop them, and who try again for as long as it takes."""

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from reattach.core.run import TERMINAL_STATES

from ..support.agents import count
from ..support.client import Follower, Stream, make_client
from ..support.sse import SSEFrame
from .plan import LONGEST_FREEZE, Job

ENDINGS = frozenset(f"run.{state}" for state in TERMINAL_STATES)
_PATIENCE = 4.0
"""Seconds of silence after which a viewer gives a stream up; keep-alives come every second."""


@dataclass
class Story:
    """One run as its people saw it.

    Attributes:
        job: What was asked for.
        run_id: Which run it became.
        follower: Who followed it from the beginning.
        told: What the request to stop was answered, if there was one.
        late_answers: Waits that were not open any more when they were answered.
        counters: Tool call → what it counts in.
        findings: What must not have happened.
    """

    job: Job
    run_id: str = ""
    follower: Follower | None = None
    told: str | None = None
    late_answers: int = 0
    counters: dict[str, str] = field(default_factory=dict[str, str])
    findings: list[str] = field(default_factory=list[str])

    @property
    def types(self) -> list[str]:
        """The types of the events that were delivered."""
        return self.follower.types if self.follower else []

    @property
    def ended(self) -> bool:
        """Whether its end was delivered."""
        return self.follower is not None and any(frame.event in ENDINGS for frame in self.follower.frames[-1:])


class People:
    """All of them, with one client."""

    def __init__(self, bases: list[str]) -> None:
        self.client = make_client("http://unused.invalid", timeout=httpx.Timeout(3))
        self.bases = bases

    async def look_after(self, job: Job, began: float) -> Story:
        """One run from its request to its end."""
        story, rng = Story(job), random.Random(job.seed)
        await asyncio.sleep(max(0.0, began + job.at - time.monotonic()))
        try:
            body = {"agent": "script", "input": {"steps": job.steps}}
            reply = await self.insist(rng, "POST", "/agent-runs", {200, 201}, json=body, headers={"idempotency-key": job.key})
            story.run_id = reply.json()["run_id"]
            async with asyncio.TaskGroup() as group:
                if job.cancel_after is not None:
                    group.create_task(self._cancel(story, rng, job.cancel_after))
                await self._watch(story, rng, group)
        except* AssertionError as e:
            story.findings += [str(error) for error in e.exceptions]
        return story

    async def insist(self, rng: random.Random, method: str, path: str, accepted: set[int], **request: Any) -> httpx.Response:
        """Send a request to any API until one of them takes it.

        Raises:
            AssertionError: It was refused for good.
        """
        while True:
            try:
                response = await self.client.request(method, rng.choice(self.bases) + path, **request)
            except httpx.TransportError:
                await asyncio.sleep(0.1)
                continue
            if response.status_code in accepted:
                return response
            assert response.status_code == 503, f"{method} {path} was answered {response.status_code} {response.text[:500]}"
            await asyncio.sleep(0.2)

    async def _cancel(self, story: Story, rng: random.Random, after: float) -> None:
        await asyncio.sleep(after)
        headers = {"idempotency-key": f"stop-{story.job.key}"}
        reply = await self.insist(rng, "POST", f"/agent-runs/{story.run_id}/cancel", {200, 202}, json={}, headers=headers)
        story.told = reply.json()["disposition"]

    def _react(self, story: Story, rng: random.Random, group: asyncio.TaskGroup, frame: SSEFrame) -> None:
        about: dict[str, Any] = json.loads(frame.data)["payload"]
        if frame.event == "tool.requested":
            story.counters[about["tool_call_id"]] = about["arguments"]["path"]
        elif frame.event == "run.waiting" and about["reason"] == "go":
            group.create_task(self._answer(story, rng, about["wait_id"], {"by": story.job.key}))
        elif frame.event == "run.waiting" and about["reason"] == "effect_unresolved":
            group.create_task(self._settle(story, rng, about["wait_id"]))

    async def _settle(self, story: Story, rng: random.Random, wait_id: str) -> None:
        """An operator looks whether the effect happened, once it is certain that nobody is still at it."""
        await asyncio.sleep(LONGEST_FREEZE + 1)
        call_id = wait_id.removeprefix("resolve_").rpartition(".")[0]
        await self._answer(story, rng, wait_id, {"happened": count(story.counters[call_id]) > 0})

    async def _answer(self, story: Story, rng: random.Random, wait_id: str, value: Any) -> None:
        await asyncio.sleep(rng.uniform(0, 1))
        headers = {"idempotency-key": f"{story.job.key}-{wait_id}"}
        body = {"wait_id": wait_id, "value": value}
        reply = await self.insist(rng, "POST", f"/agent-runs/{story.run_id}/inputs", {202, 409}, json=body, headers=headers)
        story.late_answers += reply.status_code == 409

    async def _watch(self, story: Story, rng: random.Random, group: asyncio.TaskGroup) -> None:
        follower = story.follower = Follower(self.client, story.run_id)
        while not story.ended:
            follower.connect(on=rng.choice(self.bases))
            stream, read, over = follower.stream, 0, False
            while not over:
                await asyncio.sleep(0.1)
                over = stream.ended is not None or _silent(stream)
                fresh, read = stream.frames[read:], len(stream.frames)
                for frame in (frame for frame in fresh if frame.id is not None):
                    self._react(story, rng, group, frame)
            await stream.close()
            _judge(story, stream)
            await asyncio.sleep(rng.uniform(0, 0.2))

    async def close(self) -> None:
        """Close every connection."""
        await self.client.aclose()


def _silent(stream: Stream) -> bool:
    return time.monotonic() - (stream.arrivals[-1] if stream.arrivals else stream.opened_at) > _PATIENCE


def _judge(story: Story, stream: Stream) -> None:
    if stream.status not in (0, 200, 503):
        story.findings.append(f"a stream was answered {stream.status} {stream.body[:300]!r} after {story.types[-3:]}")
        if stream.status < 500:
            raise AssertionError(f"nobody can follow any more: {json.dumps(story.findings[-1])}")
    if stream.status == 200 and stream.ended == "clean" and not story.ended:
        story.findings.append(f"a stream of an unfinished run was ended as a complete body after {story.types[-3:]}")

"""Reattach itself: its API in one process, runs that a real worker works on, appended behind a fence."""

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from .stage import Stage, free_port
from .target import Target, ask


class Product(Target):
    """Runs of the agent in agent.py; they wait for a gate, so that all subscribers are there before the first event."""

    name, id_check, only_event = "reattach", True, "message.delta"

    def start(self, stage: Stage) -> None:
        self.port, url = free_port(), f"redis://127.0.0.1:{stage.redis()}/0"
        self.gate = stage.folder / "gate"
        reattach = [sys.executable, "-c", "from reattach.cli.main import main; main()"]
        common = ["--redis", url, "--log-format", "json"]
        keep = ["--keepalive", str(self.params.keepalive)]
        stage.spawn("server", [*reattach, "serve", "--port", str(self.port), *keep, *common])
        if self.params.n:  # idle streams are of runs that nobody works on
            stage.spawn("worker", [*reattach, "work", "tests.bench.agent:agents", "--concurrency", "1000", *common])
        stage.wait(self.port)

    def create(self, names: Sequence[str]) -> Sequence[str]:
        spec = {"gate": str(self.gate), "n": self.params.n, "rate": self.params.rate, "size": self.params.size}
        body = json.dumps({"agent": "bench" if self.params.n else "nobody", "input": spec}).encode()

        def some(part: Sequence[str]) -> list[str]:
            heads = [{"Content-Type": "application/json", "Idempotency-Key": key} for key in part]
            answers = ask(self.port, [("POST", "/agent-runs", body, head) for head in heads])
            for status, said in answers:
                assert status in (200, 201), (status, said[:300])
            return [json.loads(said)["run_id"] for _, said in answers]

        with ThreadPoolExecutor(8) as pool:
            parts = [names[i : i + 50] for i in range(0, len(names), 50)]
            return [run for part in pool.map(some, parts) for run in part]

    def subscribe(self, name: str) -> tuple[str, str]:
        head = f"GET /agent-runs/{name}/events HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAccept: text/event-stream\r\n"
        return head + "\r\n", head + "Last-Event-ID: {id}\r\n\r\n"

    def event(self, name: str) -> None:
        return None

    def publish(self) -> None:
        self.gate.touch()

    def filled(self, names: Sequence[str]) -> None:
        """Wait until every run has ended."""
        end = time.monotonic() + 60
        for name in names:
            while True:
                [(status, said)] = ask(self.port, [("GET", f"/agent-runs/{name}", b"", {})])
                if status == 200 and json.loads(said)["state"] == "succeeded":
                    break
                if time.monotonic() > end:
                    raise RuntimeError(f"{name} is not written in time: {said[:300]}")
                time.sleep(0.1)

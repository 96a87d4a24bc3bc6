"""Clients that follow a session."""

from typing import Any
from urllib.parse import quote

import httpx

from ..support.client import AUTO, Follower, Stream


class Listener(Follower):
    """A client's whole story with one session, across any number of connections and servers; its sequences are the session's."""

    def __init__(self, client: httpx.AsyncClient, session_id: str, **options: Any) -> None:
        super().__init__(client, session_id, **options)

    def connect(self, cursor: str | int | None = AUTO, *, on: str = "", after: str | None = None, **headers: str) -> None:
        """Send the request of `open` without waiting for its answer."""
        if cursor == AUTO:
            cursor = self.last_event_id or None
        sent = {**self._headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if cursor is not None:
            sent["last-event-id"] = str(cursor)
        url, params = f"{on}/sessions/{quote(self.run_id, safe='')}/events", {} if after is None else {"after": after}
        self.streams.append(Stream(self.client, url, headers=sent, params=params))

    @property
    def sequences(self) -> list[int]:
        """The session's own."""
        return [int(str(frame.id).rpartition(":")[2]) for frame in self.frames]

    def runs(self) -> dict[str, list[int]]:
        """Each run's own sequences, in the order of arrival."""
        found: dict[str, list[int]] = {}
        for event in self.events:
            found.setdefault(event["run_id"], []).append(event["sequence"])
        return found

    def check(self, first: int = 1, last: int | None = None) -> None:
        """Contiguous, in order and once, for the session and for each of its runs; ids and types as the data says.

        Raises:
            AssertionError: It does not hold.
        """
        sequences = self.sequences
        assert sequences == list(range(first, first + len(sequences))), f"gap, repeat or disorder in {sequences}"
        assert last is None or (sequences and sequences[-1] == last), f"expected up to {last}, got {sequences[-3:]}"
        assert len({str(frame.id).rpartition(":")[0] for frame in self.frames}) <= 1
        for frame, event in zip(self.frames, self.events, strict=True):
            assert frame.event == event["type"] and event["event_id"] == f"{event['run_id']}:{event['sequence']}"
        for run_id, own in self.runs().items():
            assert own == list(range(own[0], own[0] + len(own))), f"{run_id}: {own}"

"""A small parser of event streams, as the WHATWG HTML standard describes one, that also keeps what a browser hides.

Differences from a browser, on purpose: comments are kept, bytes that are not UTF-8 are an error instead of U+FFFD, and a frame
remembers whether it carried an ``id`` of its own.
"""

import codecs
import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SSEFrame:
    """One dispatched frame.

    Attributes:
        event: Its type; ``message`` where none was given.
        data: Its data lines joined with LF.
        id: The id it carried itself, None where it carried none.
        last_event_id: The id in force after it, as a browser would send it.
        at: `time.monotonic()` when its last byte arrived.
    """

    event: str
    data: str
    id: str | None
    last_event_id: str
    at: float


@dataclass
class SSEParser:
    """Fed with bytes in any portions; hands out frames as they are complete.

    Attributes:
        comments: Comment lines without their colon, with their arrival times.
        retry: The last reconnection time, milliseconds.
        last_event_id: As a browser would send it.
    """

    comments: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    retry: int | None = None
    last_event_id: str = ""
    _decoder: codecs.IncrementalDecoder = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("strict"))
    _text: str = ""
    _started: bool = False
    _event: str = ""
    _id: str | None = None
    _pending_id: str | None = None
    _data: list[str] = field(default_factory=list[str])

    def feed(self, chunk: bytes) -> list[SSEFrame]:
        """Take in bytes.

        Raises:
            UnicodeDecodeError: They are not UTF-8.
        """
        now = time.monotonic()
        self._text += self._decoder.decode(chunk)
        if self._text and not self._started:
            self._started = True
            self._text = self._text.removeprefix("\ufeff")
        return [frame for line in self._lines() if (frame := self._line(line, now)) is not None]

    def _lines(self) -> Iterator[str]:
        start = 0
        while True:
            ends = [i for i in (self._text.find("\n", start), self._text.find("\r", start)) if i >= 0]
            if not ends:
                break
            end = min(ends)
            if self._text[end] == "\r" and end + 1 == len(self._text):
                # A CR at the very end may be the first half of CRLF: the line is complete, but the LF must not count as another one.
                break
            yield self._text[start:end]
            start = end + (2 if self._text[end : end + 2] == "\r\n" else 1)
        self._text = self._text[start:]

    def _line(self, line: str, now: float) -> SSEFrame | None:
        if line == "":
            return self._dispatch(now)
        if line.startswith(":"):
            self.comments.append((now, line[1:]))
            return None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = self._pending_id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry = int(value)
        return None

    def _dispatch(self, now: float) -> SSEFrame | None:
        if self._pending_id is not None:
            self.last_event_id = self._pending_id
        event, data, own = self._event, self._data, self._id
        self._event, self._data, self._id = "", [], None
        if not data:
            return None
        return SSEFrame(event=event or "message", data="\n".join(data), id=own, last_event_id=self.last_event_id, at=now)

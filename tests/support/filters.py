"""What middle boxes do to an HTTP answer, as filters for the proxy."""

from collections.abc import Callable

_BUFFER = 32 * 1024


class _Chunks:
    """Takes a chunked HTTP answer apart; the head and whatever is not chunked pass as they are."""

    def __init__(self) -> None:
        self._buffer = b""
        self.head = b""
        self.chunked = False

    def feed(self, data: bytes) -> tuple[bytes, list[bytes]]:
        """Bytes in; what passes untouched, and the payloads of whole chunks (the last one is empty)."""
        self._buffer += data
        passed = b""
        if not self.head:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return b"", []
            self.head, self._buffer = self._buffer[: end + 4], self._buffer[end + 4 :]
            self.chunked = b"transfer-encoding: chunked" in self.head.lower()
            passed = self.head
        if not self.chunked:
            passed, self._buffer = passed + self._buffer, b""
            return passed, []
        return passed, self._take()

    def _take(self) -> list[bytes]:
        chunks: list[bytes] = []
        while (line := self._buffer.find(b"\r\n")) >= 0:
            size = int(self._buffer[:line], 16)
            end = line + 2 + size
            if len(self._buffer) < end + 2:
                break
            chunks.append(self._buffer[line + 2 : end])
            self._buffer = self._buffer[end + 2 :]
        return chunks


def _encode(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def drop_comments() -> Callable[[bytes], bytes]:
    """A proxy that swallows keep-alives: chunks that hold nothing but comments."""
    chunks = _Chunks()

    def rewrite(data: bytes) -> bytes:
        passed, payloads = chunks.feed(data)
        kept = [p for p in payloads if not p or not all(line.startswith(b":") for line in p.splitlines() if line)]
        return passed + b"".join(_encode(p) for p in kept)

    return rewrite


def buffer_like_nginx() -> Callable[[bytes], bytes]:
    """A proxy with its defaults: an answer is held until it fills a buffer or ends, unless the server asked not to."""
    chunks, held = _Chunks(), b""

    def rewrite(data: bytes) -> bytes:
        nonlocal held
        passed, payloads = chunks.feed(data)
        if b"x-accel-buffering: no" in chunks.head.lower():
            return passed + b"".join(map(_encode, payloads))
        held += passed + b"".join(map(_encode, payloads))
        if len(held) < _BUFFER and b"" not in payloads and chunks.chunked:
            return b""
        out, held = held, b""
        return out

    return rewrite

"""The event stream parser the tests judge by."""

import pytest

from ..support.sse import SSEFrame, SSEParser


def parse(*chunks: bytes) -> list[tuple[str, str, str | None]]:
    """What arrives, without times."""
    parser = SSEParser()
    return [(f.event, f.data, f.id) for chunk in chunks for f in parser.feed(chunk)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_every_line_ending_in_any_portions(end: bytes, size: int) -> None:
    """LF, CRLF and CR end a line, wherever the chunks are cut."""
    text = end.join([b": hi", b"event: a.b", b"id: 1", b"data: x", b"data:  y", b"", b"data:\xf0\x9f\x8c\x8d", b"", b": end", b""])
    got = parse(*(text[i : i + size] for i in range(0, len(text), size)))
    assert got == [("a.b", "x\n y", "1"), ("message", "🌍", None)]


def test_only_complete_frames_are_dispatched() -> None:
    """A frame without its empty line is not an event; one without data is none either, but its id counts."""
    parser = SSEParser()
    assert parser.feed(b"id: 7\nevent: x\n\ndata: late\n") == []
    assert parser.last_event_id == "7"
    [frame] = parser.feed(b"\n")
    assert isinstance(frame, SSEFrame)
    assert (frame.event, frame.data, frame.id, frame.last_event_id) == ("message", "late", None, "7")


def test_ids_stay_until_the_next_one() -> None:
    """A frame without an id keeps the cursor, an empty id clears it, one with NUL is ignored."""
    parser = SSEParser()
    frames = parser.feed(b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\nid: x\x00y\ndata: d\n\n")
    assert [f.last_event_id for f in frames] == ["1", "1", "", ""]
    assert [f.id for f in frames] == ["1", None, "", None]


def test_what_a_browser_hides_is_kept() -> None:
    """Comments, the reconnection time, a leading byte order mark."""
    parser = SSEParser()
    [frame] = parser.feed(b"\xef\xbb\xbf: first\nretry: 250\nretry: soon\nunknown: x\ndata\n\n:second\n")
    assert (frame.data, parser.retry, [text for _, text in parser.comments]) == ("", 250, [" first", "second"])


def test_bytes_that_are_not_utf8_are_an_error() -> None:
    """G7: a torn character must not be papered over with U+FFFD."""
    with pytest.raises(UnicodeDecodeError):
        parse(b"data: \xf0\x9f\n\n")

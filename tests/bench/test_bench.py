"""The benches themselves work: small ones run, and a stream that is not complete does not count."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reattach.core.event import Event
from reattach.tail import Framer

from ..support.servers import RedisServer
from . import append, fanout, frames, memory
from .viewers import Viewers, _Viewer  # pyright: ignore[reportPrivateUsage]


def test_small_benches_give_tables(own_redis: Callable[..., RedisServer], tmp_path: Path) -> None:
    """Every part, with next to no work."""
    server = own_redis()
    assert "per frame" in frames.run(repetitions=1)
    assert "batches of 8" in append.run(server, repetitions=1, events={1: 32, 8: 256})
    assert "all events gone" in memory.run(server, runs=5, deltas=500)
    loads = (fanout.Load("steady", 100, 10, 1), fanout.Load("flat out", 0, 64, 32))
    said = fanout.run(server, tmp_path, repetitions=1, viewers=5, loads=loads)
    assert said.count("ratio") == 2
    assert "nan" not in said


@pytest.mark.parametrize(
    ("sent", "complete", "counts"), [((1, 2, 3), True, True), ((1, 3), True, False), ((1, 2, 2, 3), True, False), ((1, 2, 3), False, False)]
)
def test_only_complete_streams_count(sent: tuple[int, ...], complete: bool, counts: bool) -> None:
    """A hole, a repeat or a cut body is a failed measurement, not a fast one."""
    framer = Framer(run_id="run_00" + "0" * 24, release_id="r", scope="s")
    viewers, viewer = Viewers(0, "/", 1), _Viewer(b"")
    body = b"".join(framer.frame(Event(n, "step.done", 0, b"{}")).sse for n in sent)
    viewer.data_received(b"HTTP/1.1 200 OK\r\n\r\n%x\r\n%b\r\n" % (len(body), body))
    if complete:
        viewer.data_received(b"0\r\n\r\n")
    viewers._viewers.append(viewer)  # pyright: ignore[reportPrivateUsage]
    if counts:
        assert viewers.check(3) == []
    else:
        with pytest.raises(AssertionError):
            viewers.check(3)

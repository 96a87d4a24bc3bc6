"""O02: closing a browser neither stops the run nor mutes another viewer: a connection owns nothing but itself."""

from itertools import pairwise
from pathlib import Path

from ..support.agents import count
from ..support.calls import ended, new_script
from ..support.factories import Replicas
from ..support.launch import Launcher

TALK = [step for n in range(4) for step in (["emit", "step.done", {"n": n}], ["sleep", 0.3])]


async def test_viewers_leave_and_the_run_goes_on(launch: Launcher, replicas: Replicas, tmp_path: Path) -> None:
    """One viewer is cut, one closes, one stays and misses nothing; all leave, the run ends as if nobody had, and both resume exactly."""
    launch.worker()
    api1, api2 = await replicas(), await replicas()
    counter = str(tmp_path / "counter")
    run_id = await new_script(api1.client, *TALK, ["effect", counter], ["sleep", 1.5], *TALK, ["finish", {"ok": True}])
    f1, f2, f3 = await api1.follow(run_id).open(), await api2.follow(run_id).open(), await api1.follow(run_id).open()
    await f1.until(2)
    await f1.cut()
    await f3.until(4)
    await f3.close()
    lost1, lost3 = f1.sequences[-1], f3.sequences[-1]
    await f2.until("tool.completed")
    moments = [moment for moment in f2.stream.arrivals if moment >= f1.stream.ended_at]
    assert max(b - a for a, b in pairwise([f1.stream.ended_at, *moments])) < 1.0, "the viewer that stayed stalled"
    await f2.close()
    f2.check(1)

    shown = await ended(api2.client, run_id)
    assert (shown["state"], shown["attempt"], shown["cancel"]["version"]) == ("succeeded", 1, 0)
    assert count(counter) == 1
    for follower, lost in ((f1, lost1), (f3, lost3)):
        await follower.open()
        assert await follower.until_end() == "clean"
        follower.check(1, shown["sequence"])
        resumed = [frame.id for frame in follower.stream.frames if frame.id is not None]
        assert resumed[0] == f"{run_id}:{lost + 1}"
        assert "run.cancel_requested" not in follower.types and follower.types[-1] == "run.succeeded"

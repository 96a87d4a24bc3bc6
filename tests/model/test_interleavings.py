"""No order of events gives a run two owners, two ends or a gap: every order is tried, on the real commands in a real Redis."""

import pytest

from reattach.store import Store

from ..support.admin import Admin
from ..support.drive import create
from ..support.scale import LONG
from .explore import explore
from .world import World

pytestmark = pytest.mark.timeout(180)

SCENES = {
    "ownership": ("take claim look again renew append release finish cancel sweep timers time", 3),
    "effects": ("take claim intend commit finish cancel sweep time", 2),
    "doubts": ("take claim intend commit doubt finish cancel sweep time", 2),
    "handing over": ("take claim again append intend commit release finish cancel", 2),
    "waits": ("take claim park finish signal cancel sweep timers time", 2),
}
"""What happens in it, and how many owners may be lost before the run fails."""

EVERYTHING = "take claim again renew append intend commit doubt park finish release cancel signal sweep timers time"
DEPTH = 7 + LONG


@pytest.mark.parametrize("scene", SCENES)
async def test_every_order_of_events(store: Store, admin: Admin, scene: str) -> None:
    """Two workers, a canceller, two who answer, sweepers and the time, each late or twice: the rules hold in every state there is."""
    run_id = await create(store)
    kinds, losses = SCENES[scene]
    report = explore(World(admin, store.keys, run_id), kinds, losses=losses)
    print(scene, report)
    assert report.closed and {"queued", "running", "succeeded", "cancelled"} <= set(report.reached)


async def test_every_order_of_events_in_a_session(store: Store, admin: Admin) -> None:
    """Whatever happens to a run happens in its session too, in the same command: nothing is missing there, doubled, or out of order."""
    run_id = await create(store, session_id="talk")
    kinds, losses = "take claim append intend park finish release cancel signal sweep timers time", 2
    world = World(admin, store.keys, run_id, store.keys.session_name("dev", "talk"))
    report = explore(world, kinds, losses=losses, depth=6 + LONG)
    print(report)
    assert {"queued", "running", "succeeded", "cancelled", "waiting"} <= set(report.reached)


async def test_every_order_of_everything_that_can_happen(store: Store, admin: Admin) -> None:
    """All of it at once has too many states to visit them all; none of those that a few steps lead to breaks a rule."""
    run_id = await create(store)
    report = explore(World(admin, store.keys, run_id), EVERYTHING, losses=3, depth=DEPTH)
    print(report)
    assert report.depth == DEPTH

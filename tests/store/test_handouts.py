"""Deliveries for workers far away: the way back into the queue, and names that a claim is found by again."""

from reattach.core.ids import digest, new_token
from reattach.store import Delivery, Handout, Store
from reattach.store.scripts import GROUP

from ..support.admin import Admin
from ..support.drive import Hand, claim, create, start
from ..support.waiting import wait_until
from .hands import NOBODY, held, types

NAME = digest("claim", "dev", "developer", "claim-1")


async def take(store: Store) -> Delivery:
    """What the next reader is handed."""

    async def taken() -> Delivery | None:
        return next(iter(await store.work.take("support", "hand")), None)

    return await wait_until(taken, "a delivery")


async def own(store: Store, handout: Handout) -> Hand | None:
    """Claim what was handed out."""
    got = await store.work.claim(handout.delivery, consumer="hand", worker="hand", max_losses=3, backoff_ms=0, fence=handout.fence)
    return None if got is None else Hand(store, got)


async def test_what_is_given_back_is_handed_out_again(store: Store) -> None:
    """At once, with no event and no loss; sent twice it is done once."""
    run_id = await create(store)
    delivery = await take(store)
    assert await store.handouts.give_back(delivery)
    assert not await store.handouts.give_back(delivery)
    again = await take(store)
    assert (again.run_id, again.entry != delivery.entry) == (run_id, True)
    assert await store.work.take("support", "hand") == []
    assert (await store.runs.load(run_id)).losses == 0
    assert await types(store, run_id) == ["run.created"]
    assert await own(store, Handout(delivery=delivery, fence=new_token())) is None
    assert await own(store, Handout(delivery=again, fence=new_token())) is not None


async def test_what_somebody_owns_is_not_given_back(store: Store) -> None:
    """The lease stays."""
    hand = await start(store)
    assert not await store.handouts.give_back(held(hand))
    await hand.renew()
    await hand.finish()
    assert not await store.handouts.give_back(held(hand))


async def test_an_entry_of_nobody_goes(store: Store, admin: Admin) -> None:
    """A run that is gone leaves nothing in the queue."""
    await create(store)
    await (await claim(store)).finish()
    queue = store.keys.queue(NOBODY[4:6], "support")
    if not admin.exists(queue):
        await store.door.call("XGROUP", "CREATE", queue, GROUP, "0", "MKSTREAM")
    entry = (await store.door.call("XADD", queue, "*", "run", NOBODY)).decode()
    assert not await store.handouts.give_back(Delivery(run_id=NOBODY, agent="support", shard=NOBODY[4:6], entry=entry))
    assert admin.xlen(queue) == 0


async def test_a_name_stands_for_the_first(store: Store, admin: Admin) -> None:
    """Whoever comes second is told what it stands for; it expires by itself."""
    await create(store)
    handout = Handout(delivery=await take(store), fence=new_token())
    assert await store.handouts.find(NAME) is None
    assert await store.handouts.keep(NAME, handout) == handout
    assert await store.handouts.keep(NAME, handout) == handout
    second = Handout(delivery=handout.delivery, fence=new_token())
    assert await store.handouts.keep(NAME, second) == handout == await store.handouts.find(NAME)
    ttl = admin.pttl(store.keys.handout(NAME))
    assert isinstance(ttl, int) and 0 < ttl <= 62_000
    await store.handouts.forget(NAME)
    assert await store.handouts.keep(NAME, second) == second


async def test_the_same_fence_is_the_same_claim(store: Store) -> None:
    """Asked again with what was written down, before or after the first one arrived; never after the lease."""
    await create(store)
    handout = Handout(delivery=await take(store), fence=new_token())
    first, second = await own(store, handout), await own(store, handout)
    assert first is not None and second is not None and first.lease == second.lease
    assert await types(store, first.run_id) == ["run.created", "run.started"]
    await store.work.release(first.lease, cause="drain")
    assert await own(store, handout) is None
    assert (await claim(store)).run_id == first.run_id

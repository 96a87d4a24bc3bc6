"""Deliveries for workers far away: names that a claim is found by again."""

from reattach.core.ids import digest, new_token
from reattach.store import Delivery, Handout, Store

from ..support.admin import Admin
from ..support.drive import Hand, claim, create
from ..support.waiting import wait_until
from .hands import types

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

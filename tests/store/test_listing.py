"""Listing a tenant's runs."""

from typing import Any

import pytest

from reattach.core.run import RunRecord
from reattach.store import Store

from ..support.drive import create, start


async def test_pages_cover_everything_once_newest_first(store: Store) -> None:
    """Walking the pages over all shards meets every run once, in order of creation."""
    made = [await create(store) for _ in range(23)]
    seen: list[str] = []
    before = None
    while True:
        page = await store.runs.page("dev", limit=5, before=before)
        seen += [r.run_id for r in page.runs]
        before = page.next_before
        if before is None:
            break
    assert sorted(seen) == sorted(made)
    times = [(await store.runs.load(r)).created_at for r in seen]
    assert times == sorted(times, reverse=True)


async def test_filters(store: Store) -> None:
    """By state, session and agent; another tenant's runs are never among them."""
    ended = await start(store)
    await ended.finish()
    in_session = await create(store, session_id="s", agent="other")
    foreign = await create(store, tenant="elsewhere", session_id="s")

    async def ids(**filters: Any) -> set[str]:
        return {r.run_id for r in (await store.runs.page("dev", **filters)).runs}

    assert await ids() == {ended.run_id, in_session}
    assert await ids(state="succeeded") == {ended.run_id}
    assert await ids(session_id="s") == {in_session}
    assert await ids(agent="other") == {in_session}
    assert await ids(session_id="nobody") == set()
    assert {r.run_id for r in (await store.runs.page("elsewhere")).runs} == {foreign}


@pytest.mark.parametrize("before", ["run_00" + "z" * 24, "nonsense"])
async def test_a_place_that_is_gone_ends_the_listing(store: Store, before: str) -> None:
    """An unknown run to go on from gives an empty last page."""
    await create(store)
    page = await store.runs.page("dev", before=before)
    assert page.runs == () and page.next_before is None


async def test_many_runs_of_one_millisecond(store: Store) -> None:
    """Runs that share their creation time are neither skipped nor repeated at a page's border."""
    made = [await create(store) for _ in range(12)]
    for run_id in made:
        await store.door.call("ZADD", store.keys.tenant_runs(run_id[4:6], "dev"), 5, run_id)
        await store.door.call("HSET", store.keys.run(run_id), "created_at", 5)
    seen: list[str] = []
    before = None
    while not seen or before is not None:
        page = await store.runs.page("dev", limit=5, before=before)
        seen += [r.run_id for r in page.runs]
        before = page.next_before
    assert sorted(seen) == sorted(made)


async def test_the_place_of_another_tenant_is_no_place(store: Store) -> None:
    """A foreign run id answers as one that does not exist: not even that there is such a run can be learned."""
    await create(store)
    foreign = await create(store, tenant="elsewhere")
    page = await store.runs.page("dev", before=foreign)
    assert (page.runs, page.next_before) == ((), None)


@pytest.mark.parametrize("in_session", [False, True])
async def test_a_rare_kind_of_run_is_looked_for_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch, in_session: bool) -> None:
    """One request looks at some runs only; its page may be short or empty, and following the places still meets every run once."""
    monkeypatch.setattr("reattach.store.runs._SCAN", 4)
    facts: dict[str, Any] = {"session_id": "s"} if in_session else {}
    made = [await create(store, "rare" if n % 9 == 4 else "common", **facts) for n in range(40)]
    seen: list[str] = []
    read: list[int] = []
    records = store.runs._records  # pyright: ignore[reportPrivateUsage]

    async def counted(ids: list[str]) -> Any:
        read.append(len(ids))
        return await records(ids)

    monkeypatch.setattr(store.runs, "_records", counted)
    before, pages = None, 0
    while pages == 0 or before is not None:
        read.clear()
        page = await store.runs.page("dev", agent="rare", limit=2, before=before, look_at=8, **facts)
        assert sum(read) <= 16
        seen += [record.run_id for record in page.runs]
        before, pages = page.next_before, pages + 1
    assert seen == [run_id for n, run_id in reversed(list(enumerate(made))) if n % 9 == 4]
    assert pages >= 4


async def test_a_place_tells_of_no_run_that_may_not_be_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing on the way may be read, the place is a moment."""
    monkeypatch.setattr("reattach.store.runs._SCAN", 3)
    made = [await create(store, "mine" if n in (0, 11) else "theirs") for n in range(12)]
    asked: list[str] = []

    async def allowed(record: RunRecord) -> bool:
        asked.append(record.run_id)
        return record.agent == "mine"

    before, seen, places = None, list[str](), list[str]()
    while not places or before is not None:
        page = await store.runs.page("dev", limit=1, before=before, allowed=allowed, look_at=3)
        seen += [record.run_id for record in page.runs]
        before = page.next_before
        places.append(before or "")
    assert seen == [made[11], made[0]] and set(asked) == set(made)
    assert all(place in ("", made[11]) or place.isdigit() for place in places)


async def test_a_listing_reads_nothing_large(store: Store) -> None:
    """Inputs and metadata are for whoever asks for the run."""
    await create(store, input=b'{"large":1}', metadata=b'{"large":2}')
    [record] = (await store.runs.page("dev")).runs
    assert (record.input, record.metadata) == (b"{}", b"{}") and record.retention.run_ms == 30 * 86_400_000

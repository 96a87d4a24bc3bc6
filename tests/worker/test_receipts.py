"""What functions that belong to the product may do to the record of an effect: nothing that a later attempt could not read."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from reattach import Agents, Receipt, Run
from reattach.store import Store

from .seen import ends, outcome, reaches, submit, value


async def test_a_probe_cannot_end_the_worker(store: Store, workers: Callable[..., Any]) -> None:
    """A probe that exits has found nothing out: the effect is unresolved, and every other run here goes on."""
    own = Agents()

    async def probe(delay: int) -> None:
        raise SystemExit(3)

    @own.agent("probing")
    async def probing(run: Run) -> None:
        await run.effect("a.b", asyncio.sleep, {"delay": 20}, timeout=0.1, on_unresolved=probe)

    await workers(own)
    for _ in range(2):
        assert value((await ends(store, await submit(store, "probing"))).error)["code"] == "effect_unresolved"


@pytest.mark.parametrize(("given", "kept"), [(558, "558"), ("bad \ud800", "bad ?"), (None, None), ([1], None)])
async def test_a_receipt_of_any_form_can_be_read_again(store: Store, workers: Callable[..., Any], given: Any, kept: str | None) -> None:
    """The effect has happened: what its function named it by must never keep the next pass from reading the record."""
    own = Agents()

    async def tool() -> Receipt:
        return Receipt(receipt_id=given, result_version=given, result="done")

    @own.agent("numbered")
    async def numbered(run: Run) -> Any:
        receipt = await run.effect("a.b", tool)
        await run.wait_for("approval")
        return [receipt.receipt_id, receipt.result_version, receipt.result, receipt.replayed]

    await workers(own)
    run_id = await submit(store, "numbered")
    waiting = await reaches(store, run_id, "waiting")
    assert waiting.wait_id is not None
    await store.runs.answer(run_id, wait_id=waiting.wait_id, value=b"true", by="anna", key=None, fingerprint="")
    receipt_id, *rest = await outcome(store, run_id)
    assert rest == [kept, "done", True]
    assert receipt_id == kept if kept is not None else receipt_id.startswith("receipt_")


async def test_a_branch_that_gives_up_leaves_the_others_their_answer(store: Store, workers: Callable[..., Any]) -> None:
    """Two branches share a read-only call, and one has less patience: the other gets the result, and nobody fails."""
    own = Agents()

    @own.agent("sharing")
    async def sharing(run: Run) -> Any:
        async def look() -> str:
            await asyncio.sleep(0.4)
            return "found"

        async def ask() -> Any:
            return (await run.effect("a.read", look, call_id="same", read_only=True)).result

        async def impatient() -> Any:
            try:
                async with asyncio.timeout(0.1):
                    return await ask()
            except TimeoutError:
                return "gave up"

        # Alone, it is cancelled with its only branch, and the same call may be made again at once.
        return [await impatient(), *await asyncio.gather(impatient(), ask())]

    await workers(own)
    assert await outcome(store, await submit(store, "sharing")) == ["gave up", "gave up", "found"]

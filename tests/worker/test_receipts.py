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

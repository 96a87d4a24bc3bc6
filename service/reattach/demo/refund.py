"""An agent that asks a person: it waits for an approval without holding a worker."""

from typing import Any

from reattach import Run

from .ask import RefundAsk, is_yes
from .desk import Desk


async def refund_after_approval(run: Run, ask: RefundAsk, desk: Desk) -> dict[str, Any]:
    """Ask whether to give money back, and note what was decided; the run's outcome."""
    found = await run.effect("tickets.read", desk.read, {"ticket": ask.ticket}, read_only=True)
    customer, amount = found.result["customer"]["name"], f"{ask.amount:.2f} EUR"
    async with run.message() as message:
        await message.write(f"{customer} should get {amount} back for ticket {ask.ticket}. Somebody has to agree to that.")
    said = await run.wait_for("approval", prompt=f"Refund {amount} to {customer} (ticket {ask.ticket})?", timeout=ask.timeout)
    approved = is_yes(said)
    body = f"Refund of {amount} {'approved' if approved else 'declined'}."
    note = await run.effect("tickets.add_note", desk.add_note, {"ticket": ask.ticket, "body": body}, on_unresolved=desk.find_note)
    async with run.message() as message:
        await message.write(f"{body} It is noted on the ticket.")
    return {"ticket": ask.ticket, "approved": approved, "note": note.receipt_id, "version": note.result_version}

"""What works together for one run under one hold."""

from typing import TYPE_CHECKING

from ..core.verdict import REASON
from .appender import Appender
from .effects import Effects, Plan
from .hold import Hold, current_call
from .operator import Undecided, Verdicts
from .output import Output
from .recall import Recall
from .receipt import Receipt
from .waits import Waits

if TYPE_CHECKING:
    from ..store import Claim, Store


class Parts:
    """The appender, output, effects and waits of one hold, joined.

    Attributes:
        claim: What the store gave us.
        hold: Whether it is still ours.
        events: The logs.
    """

    def __init__(self, store: "Store", claim: "Claim", hold: Hold, recall: Recall) -> None:
        """Join them."""
        work, limit = store.work, store.settings.max_payload
        self.claim, self.hold, self.events = claim, hold, store.events
        self.appender = Appender(work, hold)
        self.output = Output(hold, self.appender, recall, max_payload=limit)
        self.verdicts = Verdicts(claim.answers)
        self.effects = Effects(work, hold, self.appender, claim.effects, self.verdicts, max_bytes=limit)
        self.waits = Waits(work, hold, appender=self.appender, effects=self.effects, output=self.output, answers=claim.answers)

    async def carry_out(self, plan: Plan) -> Receipt:
        """Carry a tool call to its receipt. Where only a person can say what became of it, the run is parked until one has.

        Raises:
            EffectFailed: The function raised, now or in an earlier attempt.
            EffectUnresolved: It is unknown whether it took effect, and the policy does not settle it.
            Interrupt: The run is parked now, or must stop.
        """
        nested = current_call.get() is not None
        # Parking splits the open messages; they must split at the same place in every later pass to be recognised.
        if not nested and self.verdicts.asked(plan.call.call_id):
            await self.output.split()
        while True:
            try:
                return await self.effects.run(plan)
            except Undecided as question:
                if nested:
                    raise question.unresolved from None
                answer = await self.waits.ask(question.wait_id, reason=REASON, prompt=question.prompt)
                self.verdicts.add(question.wait_id, answer)

    async def settle(self) -> None:
        """Wait until what the handler began is recorded.

        Raises:
            Interrupt: It cannot be: the run is not ours any more.
        """
        self.waits.close()
        await self.effects.settle()
        await self.appender.flush()

    async def close(self) -> None:
        """Drop what can no longer be recorded, and leave no task behind."""
        await self.effects.close()
        await self.appender.close()

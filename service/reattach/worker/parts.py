"""What works together for one run under one hold."""

from typing import TYPE_CHECKING

from .appender import Appender
from .effects import Effects
from .hold import Hold
from .output import Output
from .recall import Recall
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
        self.effects = Effects(work, hold, self.appender, claim.effects, max_bytes=limit)
        self.waits = Waits(work, hold, appender=self.appender, effects=self.effects, output=self.output, answers=claim.answers)

    async def settle(self) -> None:
        """Wait until what the handler began is recorded.

        Raises:
            Interrupt: It cannot be: the run is not ours any more.
        """
        await self.effects.settle()
        await self.appender.flush()

    async def close(self) -> None:
        """Drop what can no longer be recorded, and leave no task behind."""
        await self.effects.close()
        await self.appender.close()

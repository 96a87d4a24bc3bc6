"""Why a stream of a run that goes on comes to its end here."""

from typing import Literal

EndReason = Literal["drain", "unavailable"]


class StreamEnded(Exception):
    """This process stops delivering though the run goes on; the viewer's cursor stays good anywhere else.

    Attributes:
        reason: ``drain``: the process stops. ``unavailable``: the store was away for too long, or came back without what it had.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)

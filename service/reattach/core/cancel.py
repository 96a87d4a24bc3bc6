"""What becomes of a request to stop a run (contract, section 6).

The commands in Redis decide it, from what was really committed, and write it into the terminal event; this module only names it.
"""

from typing import Final, Literal

Disposition = Literal["cancelled_before_effect", "cancelled_after_effect", "cancellation_pending", "already_terminal"]
"""The run ended before any mutating tool had committed; after one had, whose receipts are in the answer; it has not come to a boundary
yet; it had ended already, or ended by itself first, and that outcome stands."""

PENDING: Final = "cancellation_pending"
TOO_LATE: Final = "already_terminal"

"""How hard the cases try: seconds by default, as long as a person wants with ``REATTACH_TEST_LONG``."""

import os

LONG = max(1, int(os.environ.get("REATTACH_TEST_LONG", "1")))


def rounds(count: int) -> int:
    """A number of rounds, multiplied for people."""
    return count * LONG


def seconds(duration: float) -> float:
    """A duration, multiplied for people."""
    return duration * LONG

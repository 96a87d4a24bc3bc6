"""How hard the cases try: seconds by default, longer for people: ``REATTACH_TEST_LONG=20 pytest -o timeout=0 tests/cases``."""

import os

LONG = max(1, int(os.environ.get("REATTACH_TEST_LONG", "1")))


def rounds(count: int) -> int:
    """A number of rounds, multiplied for people."""
    return count * LONG


def seconds(duration: float) -> float:
    """A duration, multiplied for people."""
    return duration * LONG

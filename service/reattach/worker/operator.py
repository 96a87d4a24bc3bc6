"""Tool calls that only a person can settle: what was asked, and what was answered."""

from collections.abc import Mapping
from itertools import count

from ..core.errors import EffectUnresolved
from ..core.payload import from_json
from ..core.receipt import EffectCall
from ..core.verdict import Verdict, asks_about, question_id, read_verdict
from .receipt import Receipt


class Undecided(Exception):
    """A call has to wait for a person.

    Attributes:
        wait_id: What the answer will be under.
        prompt: What to ask.
        unresolved: What to raise where waiting is not possible.
    """

    def __init__(self, wait_id: str, prompt: str, unresolved: EffectUnresolved) -> None:
        """Say what is asked."""
        super().__init__(prompt)
        self.wait_id, self.prompt, self.unresolved = wait_id, prompt, unresolved


class Verdicts:
    """The answers of one run that may be verdicts."""

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        """Start from the answers earlier passes got."""
        self._answers = dict(answers)

    def add(self, wait_id: str, value: bytes) -> None:
        """Remember one more answer."""
        self._answers[wait_id] = value

    def asked(self, call_id: str) -> bool:
        """Whether the run was ever parked for this call."""
        return any(asks_about(wait_id, call_id) for wait_id in self._answers)

    def on(self, call: EffectCall, sequence: int, unresolved: EffectUnresolved) -> Verdict:
        """What was said of a call that became unresolved at this sequence.

        Raises:
            Undecided: Nothing yet, or nothing that is a verdict.
        """
        for turn in count(1):
            wait_id = question_id(call.call_id, sequence, turn)
            if (answer := self._answers.get(wait_id)) is None:
                again = "" if turn == 1 else ' The answer before was none; it is {"happened": true} or {"happened": false}.'
                raise Undecided(wait_id, f"Did {call.tool} take effect (tool call {call.call_id})?{again}", unresolved)
            if (verdict := read_verdict(answer)) is not None:
                return verdict
        raise AssertionError("unreachable")


def to_receipt(verdict: Verdict) -> Receipt:
    """What the tool would have returned, as far as the person knew."""
    result = bytes(verdict.result)
    return Receipt(receipt_id=verdict.receipt_id or "", result_version=verdict.result_version, result=from_json(result) if result else None)

"""What is written down twice, here and in the scripts, is the same."""

import re
from pathlib import Path
from typing import get_args

from reattach.core.cancel import Disposition
from reattach.core.event import DELTA_TYPES, TERMINAL_TYPES
from reattach.core.rules import RULES

SCRIPTS = {path.name: path.read_text("utf-8") for path in (Path(__file__).parents[2] / "lua").rglob("*.lua")}
ALL = "\n".join(SCRIPTS.values())


def test_the_class_with_the_short_retention() -> None:
    """Which events are left out of the audit stream."""
    [line] = re.findall(r"local kept = (.*)", SCRIPTS["log.lua"])
    assert line == " and ".join(f"kind ~= '{kind}'" for kind in re.findall(r"'([a-z.]+)'", line))
    assert set(re.findall(r"'([a-z.]+)'", line)) == DELTA_TYPES


def test_types_and_dispositions() -> None:
    """Every event the scripts write is folded, and every disposition they decide has its name."""
    written = set(re.findall(r"'((?:run|input|tool)\.[a-z_]+)'", ALL))
    assert written and written - DELTA_TYPES <= set(RULES)
    assert set(re.findall(r"'((?:cancelled_|cancellation_|already_)[a-z_]+)'", ALL)) <= set(get_args(Disposition))
    assert {f"run.{state}" for state in re.findall(r"state == '([a-z]+ed)'", SCRIPTS["finish.lua"])} <= TERMINAL_TYPES

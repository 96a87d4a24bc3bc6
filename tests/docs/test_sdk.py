"""What the README says of handlers and of the demo."""

import inspect
import re
from pathlib import Path
from typing import Any, Final

from reattach import Message, Run
from reattach.cli.main import EXIT_INTERRUPTED, EXIT_REFUSED
from reattach.cli.tail import EXIT_CODES
from reattach.core.errors import EffectFailed, EffectUnresolved, Nondeterminism
from reattach.demo.ask import SPEED
from reattach.demo.model.endpoint import from_environment
from reattach.worker.outcome import HANDLER_ERROR, INVALID_OUTCOME
from reattach.worker.waits import PARK_FROM

from ..support.processes import ROOT
from . import readme

GUIDE: Final = ROOT / "tests" / "guide" / "test_ten_lines.py"
DEMO: Final = ROOT / "service" / "reattach" / "demo"
LUA: Final = ROOT / "lua"
TOLD_BY_CREATION: Final = {"run_id", "agent", "tenant", "initiator", "session_id", "parent_run_id", "resource_scope", "release_id"}


def flat() -> str:
    """The README without line breaks."""
    return readme.text().replace("\n", " ")


def test_the_ten_lines_are_ten_and_the_guide_s() -> None:
    """What is shown is what is tested, and as short as it claims to be."""
    snippet = readme.in_language("python")[0].text.splitlines()
    first = snippet.index("agents = Agents()")
    [guide] = re.findall(r"(?s)# fmt: off\n(.*?)\n# fmt: on", GUIDE.read_text("utf-8"))
    assert snippet[first:] == re.sub(r"  # (?:noqa|pyright).*", "", guide).splitlines()
    assert snippet[0] == "from reattach import Agents, Run"
    assert len(snippet[first:]) + 1 == 10


def public(cls: type[Any]) -> set[str]:
    """The methods and properties that a handler may use."""
    return {name for name, _ in inspect.getmembers_static(cls) if not name.startswith("_")}


def test_every_method_of_a_run_and_a_message_is_told() -> None:
    """Nothing of the SDK is left out of its table, and nothing in it is made up."""
    cells = " ".join(" ".join(row) for row in readme.table("in a handler", "what it does").rows)
    told_of_run, told_of_message = (set(re.findall(rf"\b{name}\.(\w+)", cells)) for name in ("run", "message"))
    assert told_of_run == public(Run) | {"attempt"}
    assert told_of_message == public(Message) - {"message_id"}
    arguments = set(inspect.signature(Run.effect).parameters) | set(inspect.signature(Run.wait_for).parameters)
    assert set(re.findall(r"(\w+)=", cells)) <= arguments
    assert "From two minutes on it parks" in cells
    assert PARK_FROM == 120


def test_why_a_run_fails() -> None:
    """Every code that Reattach itself ends a run with is named."""
    [told] = re.findall(r"A failed run's `error.code` is your own or (.*?)\. Cancelling", flat())
    by_scripts = {code for path in LUA.rglob("*.lua") for code in re.findall(r'"error":\{"code":"(\w+)"', path.read_text("utf-8"))}
    by_workers = {HANDLER_ERROR, INVALID_OUTCOME, EffectFailed.code, EffectUnresolved.code, Nondeterminism.code}
    assert set(readme.names(told)) == by_scripts | by_workers


def test_exit_codes() -> None:
    """Those of ``tail``, and those that every command has."""
    assert EXIT_CODES == {"succeeded": 0, "failed": 1, "cancelled": 3}
    assert "Ends with 0 when the run succeeded, 1 when it failed, 3 when it was cancelled." in readme.text()
    assert f"ends with 2 on wrong usage, with {EXIT_REFUSED} when something could not be done" in flat()
    assert f"those that look with {EXIT_INTERRUPTED}" in flat()


def test_variables_of_the_demo() -> None:
    """Every variable that the demo reads, with its default."""
    read = {name for path in DEMO.rglob("*.py") for name in re.findall(r'"((?:OPENAI|REATTACH_DEMO)_\w+)"', path.read_text("utf-8"))}
    told = {readme.names(row[1])[0]: row[2] for row in readme.table("flag", "variable").rows if not row[0]}
    assert set(told) == read
    usual = from_environment({"OPENAI_API_KEY": "k"})
    assert usual is not None
    defaults = {"REATTACH_DEMO_MODEL": usual.model, "REATTACH_DEMO_TIMEOUT": f"{usual.silence:g}", "REATTACH_DEMO_SPEED": f"{SPEED:g}"}
    assert {name: default.strip("`") for name, default in told.items() if default} == defaults


def test_the_page_listens_to_what_there_is() -> None:
    """The event types and the path in the browser's snippet exist."""
    [page] = readme.in_language("html")
    known = {name for row in readme.table("type", "payload").rows for name in readme.names(row[0])}
    assert set(re.findall(r'on\("([^"]+)"', page.text)) < known
    assert "/agent-runs/${run}/events" in page.text


def test_the_layout_is_the_layout() -> None:
    """Every folder that is named exists, and every part of the package is named."""
    [layout] = [block.text for block in readme.in_language("text") if "service/reattach/core" in block.text]
    named = set(re.findall(r"\b(?:service/reattach|tests|deploy|lua)/\w*", layout))
    assert not [name for name in named if not (ROOT / name).exists()]
    parts = {path.parent.name for kind in ("py", "js") for path in (ROOT / "service" / "reattach").glob(f"*/[a-z]*.{kind}")}
    assert {Path(name).name for name in named if name.startswith("service/")} == parts

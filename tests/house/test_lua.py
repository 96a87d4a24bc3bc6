"""Every Lua command is clean as the server gets it: includes, bindings of the header and body in one text."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from reattach.store.scripts import Script, load_scripts

from .tree import LUA, ROOT

COMMANDS: Final = sorted(load_scripts().values(), key=lambda script: script.name)
INCLUDES: Final = sorted(LUA.glob("include/*.lua"))
SHARED: Final = sorted({name for path in INCLUDES for name in re.findall(r"^local function (\w+)", path.read_text("utf-8"), re.MULTILINE)})


def test_every_file_is_a_command_or_used_by_one() -> None:
    """No file of ``lua/`` is dead: each is a command, or an include that at least one command has in it."""
    assert {script.name for script in COMMANDS} == {path.stem for path in LUA.glob("*.lua")}
    unused = [path.name for path in INCLUDES if not any(path.read_text("utf-8") in script.text for script in COMMANDS)]
    assert not unused, f"no command uses {unused}"


@pytest.mark.skipif(shutil.which("luacheck") is None, reason="luacheck is missing: apt-get install lua-check, or luarocks install luacheck")
def test_every_assembled_command_passes_luacheck(tmp_path: Path) -> None:
    """Nothing is unused, undefined or shadowed; a key or argument that a header declares and the body ignores is an error too."""
    for script in COMMANDS:
        (tmp_path / f"{script.name}.lua").write_text(script.text, "utf-8")
    # A command takes a whole include, so one of its functions may be idle here; the next test holds that none is idle everywhere.
    idle = [argument for name in SHARED for argument in ("--ignore", f"211/^{name}$")]
    command = ["luacheck", "--config", ROOT / ".luacheckrc", "--no-color", "--codes", "--formatter", "plain", *idle, "--", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", SHARED)
def test_every_shared_function_is_called(name: str) -> None:
    """A function of an include is called by a command or by another include."""
    sources = [path.read_text("utf-8") for path in LUA.rglob("*.lua")]
    assert any(re.search(rf"(?<!function )\b{name}\(", source) for source in sources)


@pytest.mark.parametrize("script", COMMANDS, ids=lambda script: script.name)
def test_a_command_names_no_key_by_itself(script: Script) -> None:
    """Keys come in through the header only: one that a script put together would be undeclared, and break a cluster."""
    assert not re.search(r"""['"]ra:""", script.text)
    assert not re.search(r"""['"](KEYS|SCAN|FLUSHDB|FLUSHALL|EVAL|FUNCTION)['"]""", script.text)

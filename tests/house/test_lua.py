"""Every Lua command is clean as the server gets it: header, bindings, includes and body in one text."""

import shutil
import subprocess
from pathlib import Path

import pytest

from reattach.store.scripts import Script, load_scripts

from .tree import LUA, ROOT

COMMANDS = sorted(load_scripts().values(), key=lambda script: script.name)


def test_every_file_is_a_command_or_used_by_one() -> None:
    """No file of ``lua/`` is dead: each is a command, and each include is part of at least one."""
    assert {script.name for script in COMMANDS} == {path.stem for path in LUA.glob("*.lua")}
    texts = [script.text for script in COMMANDS]
    unused = [path.name for path in LUA.glob("include/*.lua") if not any(path.read_text("utf-8") in text for text in texts)]
    assert not unused, f"no command uses {unused}"


@pytest.mark.skipif(shutil.which("luacheck") is None, reason="luacheck is missing: apt-get install lua-check, or luarocks install luacheck")
def test_every_assembled_command_passes_luacheck(tmp_path: Path) -> None:
    """Nothing is unused, undefined or shadowed: a key or argument that is declared and not used is an error too."""
    for script in COMMANDS:
        (tmp_path / f"{script.name}.lua").write_text(script.text, "utf-8")
    done = subprocess.run(
        ["luacheck", "--config", ROOT / ".luacheckrc", "--no-color", "--codes", "--formatter", "plain", *sorted(tmp_path.glob("*.lua"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", COMMANDS, ids=lambda script: script.name)
def test_a_command_names_no_key_by_itself(script: Script) -> None:
    """Keys come in through the header only; one that a script put together would be unseen by a cluster."""
    assert '"ra:' not in script.text
    assert "'ra:" not in script.text
    assert not any(word in script.text for word in ("'KEYS'", "'SCAN'", "'FLUSHDB'", "'FLUSHALL'"))

"""The module as a package: complete, typed, documented, and without any need."""

import json
import os
import re
import subprocess
from pathlib import Path

import reattach

from ..support.processes import ROOT
from .packages import packages
from .page import MODULE

FILES = sorted(path for path in MODULE.glob("*.js"))


def test_it_is_whole() -> None:
    """No dependency, no build; every file that another one needs is there and listed; one entry, with types."""
    about = json.loads((MODULE / "package.json").read_text("utf-8"))
    assert not {"dependencies", "devDependencies", "peerDependencies", "scripts"} & set(about)
    assert about["files"] == ["*.js", "reattach.d.ts"]
    for path in FILES:
        for name in re.findall(r"from '([^']+)'", path.read_text("utf-8")):
            assert name.startswith("./") and (MODULE / name).is_file(), f"{path.name} needs {name}"


def test_it_is_of_this_version() -> None:
    """The package has the service's version."""
    assert json.loads((MODULE / "package.json").read_text("utf-8"))["version"] == reattach.__version__


def test_every_option_is_documented() -> None:
    """Its README names every option that the types have, and every member of what a mirror shows."""
    types, readme = ((MODULE / name).read_text("utf-8") for name in ("reattach.d.ts", "README.md"))
    for interface in ("Options", "CommandOptions", "MirrorView<E>", "Counters"):
        body = re.search(rf"interface {re.escape(interface)}[^{{]*{{(.*?)\n}}", types, re.DOTALL)
        assert body is not None
        names = re.findall(r"^  (?:readonly )?(\w+)\??:", body[1], re.MULTILINE)
        assert names and [name for name in names if f"`{name}`" not in readme] == []


def test_it_never_makes_markup_or_code_of_text() -> None:
    """Nothing in it could: it knows no document but its events."""
    for path in FILES:
        text = re.sub(r"/\*\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
        for word in ("innerHTML", "outerHTML", "insertAdjacent", "eval(", "Function(", "document.write", "createElement", "import("):
            assert word not in text, f"{path.name} has {word}"


def test_the_types_hold(tmp_path: Path) -> None:
    """A page written in TypeScript, as strict as can be, compiles against the types; everything exported is declared."""
    folder = packages()
    usage = Path(__file__).parent / "usage.ts"
    command = [str(folder / "node_modules" / ".bin" / "tsc"), "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext"]
    command += ["--lib", "es2023,dom,dom.iterable", "--types", "", "--exactOptionalPropertyTypes", str(usage)]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_exported_is_declared() -> None:
    """The types name what the module exports, and nothing else."""
    script = f"import('{(MODULE / 'reattach.js').as_uri()}').then(m => console.log(JSON.stringify(Object.keys(m))))"
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=30, check=True)
    types = (MODULE / "reattach.d.ts").read_text("utf-8")
    declared = re.findall(r"^export (?:declare )?(?:class|function|const) (\w+)", types, re.MULTILINE)
    assert sorted(json.loads(done.stdout)) == sorted(set(declared))

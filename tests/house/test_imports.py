"""Imports point down only, and what is dangerous is imported in one place."""

import subprocess
import sys
from pathlib import Path

import reattach

from .tree import PACKAGE, ROOT, name_of


def test_the_import_contracts_hold() -> None:
    """The contracts in pyproject.toml hold: layers, one door to Redis, a worker without web server, a pure core."""
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_folder_is_a_package_that_says_what_it_is() -> None:
    """A folder without ``__init__.py`` would be invisible to the import rules; one without a docstring, to the reader."""
    starts = sorted({path.parent / "__init__.py" for path in PACKAGE.rglob("*.py")})
    silent = [name_of(start) for start in starts if not start.is_file() or '"""' not in start.read_text("utf-8")]
    assert not silent, f"missing, or without a docstring: {silent}"


def test_the_package_is_the_one_in_this_tree() -> None:
    """The suite judges this checkout, not another copy that happens to be installed."""
    assert Path(reattach.__file__).parent == PACKAGE

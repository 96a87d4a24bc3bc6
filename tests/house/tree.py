"""Where the source tree is, and what of it is ours to judge."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = ROOT / "service" / "reattach"
LUA: Final = ROOT / "lua"


def python_files() -> list[Path]:
    """Every Python file of the package and of its tests."""
    return sorted(path for folder in (ROOT / "service", ROOT / "tests") for path in folder.rglob("*.py"))


def name_of(path: Path) -> str:
    """A file's name as a person would type it at the root."""
    return path.relative_to(ROOT).as_posix()

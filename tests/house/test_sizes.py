"""Files and functions stay small enough to read in one go."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from .tree import LUA, PACKAGE, ROOT, name_of, python_files

FILE_LINES: Final = 400
FUNCTION_LINES: Final = 60
LUA_LINES: Final = 80
MEDIAN_LINES: Final = 180

# Files (`service/reattach/x.py`) and functions (`service/reattach/x.py:Class.method`) that may be longer. The list may only shrink.
EXCEPTIONS: Final[frozenset[str]] = frozenset()

CODE: Final = {".py", ".js", ".css", ".html"}


def lines(path: Path) -> int:
    """How long a file is."""
    return len(path.read_text("utf-8").splitlines())


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Every function of a file, by dotted name, with its length without decorators and docstring."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    yield name, length(child)
                yield from walk(child, f"{name}.")
            else:
                yield from walk(child, prefix)

    yield from walk(ast.parse(path.read_text("utf-8")), "")


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` to the last statement, the docstring left out: prose is free."""
    total = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def code_files() -> list[Path]:
    """Hand-written code of the package and its tests."""
    return sorted({*python_files(), *(path for path in PACKAGE.rglob("*") if path.suffix in CODE and path.is_file())})


def too_long() -> dict[str, str]:
    """Everything over its limit."""
    found = {name_of(p): f"{lines(p)} lines, at most {FILE_LINES}" for p in code_files() if lines(p) > FILE_LINES}
    found |= {name_of(p): f"{lines(p)} lines, at most {LUA_LINES}" for p in LUA.rglob("*.lua") if lines(p) > LUA_LINES}
    for path in python_files():
        for name, size in functions(path):
            if size > FUNCTION_LINES:
                found[f"{name_of(path)}:{name}"] = f"{size} lines, at most {FUNCTION_LINES}"
    return found


def test_nothing_is_too_long() -> None:
    """No file, function or Lua command is longer than its limit."""
    over = {name: why for name, why in too_long().items() if name not in EXCEPTIONS}
    assert not over, "too long:\n" + "\n".join(f"  {name}: {why}" for name, why in sorted(over.items()))


def test_no_exception_outlives_its_reason() -> None:
    """An exception that is no longer needed has to leave the list."""
    assert set(too_long()) >= EXCEPTIONS


def test_the_usual_file_is_short() -> None:
    """Half of the package's files have at most 180 lines."""
    assert median(lines(path) for path in PACKAGE.rglob("*.py")) <= MEDIAN_LINES


def test_lines_end_as_the_editor_settings_say() -> None:
    """Every file ends with one newline and no line ends with blanks."""
    wrong: list[str] = []
    for path in [*code_files(), *LUA.rglob("*.lua"), *ROOT.glob("*.md")]:
        text = path.read_bytes()
        untidy = b" \n" in text or b"\r\n" in text or text.endswith(b"\n\n")
        if text and (untidy or not text.endswith(b"\n")):
            wrong.append(name_of(path))
    assert not wrong, f"blanks at a line's end, or not exactly one newline at the file's: {wrong}"

"""What a user may import is listed, and only that."""

import importlib.metadata
import tomllib
from typing import Final

import reattach

from .tree import ROOT

PUBLIC: Final = [
    "Agents",
    "EffectFailed",
    "EffectUnresolved",
    "InvalidRequest",
    "Message",
    "Nondeterminism",
    "PastEvent",
    "PayloadTooLarge",
    "ReattachError",
    "Receipt",
    "Run",
    "RunFailed",
    "__version__",
]


def test_the_public_names_are_these() -> None:
    """A name is added or taken away on purpose only: this list and ``__all__`` are changed together."""
    assert sorted(reattach.__all__) == sorted(PUBLIC)
    assert all(hasattr(reattach, name) for name in PUBLIC)


def test_every_public_name_is_documented() -> None:
    """Each public class and function says what it is."""
    silent = [name for name in reattach.__all__ if not name.startswith("__") and not getattr(reattach, name).__doc__]
    assert not silent


def test_the_version_is_said_once() -> None:
    """Package metadata, the module and the changelog tell one version."""
    assert importlib.metadata.version("reattach") == reattach.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "version" in project["dynamic"]
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text("utf-8")

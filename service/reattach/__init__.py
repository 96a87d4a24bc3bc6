"""Reattach: agent runs that outlive their connections."""

from reattach.core.version import __version__

__all__ = ["__version__"]

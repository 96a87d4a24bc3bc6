"""The version, kept below every layer that shows it."""

__version__ = "0.1.0"

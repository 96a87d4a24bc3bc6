"""What the product logged in this process, however it is configured."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import structlog

from reattach.obs.log import redact, redact_text

from .secrecy import SECRECY

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "exception": 40, "critical": 50}


class LogCapture:
    """Log entries as dictionaries.

    Attributes:
        entries: All of them, in order.
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def __call__(self, logger: Any, method: str, entry: Any) -> Any:
        """Take one entry; print it in one line, for whoever reads a failed test's output."""
        self.entries.append({**entry, "level": method})
        SECRECY.logged(str(redact(logger, method, structlog.processors.format_exc_info(logger, method, dict(entry)))))
        if _LEVELS[method] >= _LEVELS["warning"]:
            print(method, entry.get("event"), {k: v for k, v in entry.items() if k not in ("event", "exc_info")})
        raise structlog.DropEvent

    def at_least(self, level: str) -> list[dict[str, Any]]:
        """Entries of this level or a worse one."""
        return [entry for entry in self.entries if _LEVELS[entry["level"]] >= _LEVELS[level]]


@contextmanager
def captured() -> Generator[LogCapture]:
    """Record every entry while it is open."""
    capture = LogCapture()
    others = _Others(logging.WARNING)
    logging.getLogger().addHandler(others)
    before = structlog.get_config()["processors"]
    known: Any = before
    saved = list(known)
    # In place: loggers that were bound already keep their reference to this list.
    known[:] = [capture]
    try:
        yield capture
    finally:
        known[:] = saved
        logging.getLogger().removeHandler(others)


class _Others(logging.Handler):
    """What libraries log."""

    def emit(self, record: logging.LogRecord) -> None:
        SECRECY.logged(redact_text(self.format(record)))

"""Logs: one line per thing that happened, readable in a terminal, JSON in a pipe; nothing secret in either.

Secrets are kept out twice: fields that by their name hold a credential or a caller's data are blanked, and text that by its form is one
(bearer tokens, JWTs, keys, tickets and passwords in URLs) is blanked wherever it stands, tracebacks included.
"""

import logging
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

BLANK: Final = "[redacted]"

SECRET_FIELDS: Final = frozenset(
    {
        "api_key", "arguments", "authorization", "body", "cookie", "data", "headers", "idempotency_key", "input", "jwt", "key", "metadata",
        "outcome", "password", "payload", "prompt", "query", "result", "secret", "set_cookie", "text", "ticket", "token", "value",
    }
)  # fmt: skip
"""Names (lower case, ``-`` as ``_``) whose values never reach a log."""

_SECRETS: Final = re.compile(
    r"(?P<keep>\b(?:bearer|basic)\s+)[\w~+/.=-]+"
    r"|(?P<keep2>\b(?:ticket|token|access_token|api_key|key|password|secret)=)[^&\s\"'<>]+"
    r"|(?P<keep3>\b[a-z][a-z0-9+.-]*://)[^/@\s]*(?=@)"
    r"|\beyJ[\w-]+\.[\w-]*\.[\w-]*"
    r"|\b(?:sk-|tkt_)[\w-]{8,}",
    re.IGNORECASE,
)
_MAX_TEXT: Final = 16_384
_MAX_DEPTH: Final = 6


def _blank(match: "re.Match[str]") -> str:
    kept = match["keep"] or match["keep2"] or match["keep3"] or ""
    return kept + BLANK


def redact_text(text: str) -> str:
    """The text without what looks like a credential, and not longer than 16 KiB."""
    if len(text) > _MAX_TEXT:
        text = f"{text[:_MAX_TEXT]}… ({len(text)} characters)"
    return _SECRETS.sub(_blank, text)


def redact_value(name: str, value: Any, depth: int = 0) -> Any:
    """A field's value as it may be logged."""
    if name.lower().replace("-", "_") in SECRET_FIELDS:
        return BLANK
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes | bytearray) or depth >= _MAX_DEPTH:
        return BLANK
    if isinstance(value, Mapping):
        return {str(k): redact_value(str(k), v, depth + 1) for k, v in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_value("", v, depth + 1) for v in cast(Iterable[Any], value)]
    return value


def redact(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """The structlog processor that keeps secrets out; runs after tracebacks have become text."""
    for name, value in event.items():
        if not name.startswith("_"):
            event[name] = redact_value(name, value)
    return event


def _renderer(form: str, colors: bool) -> Processor:
    if form == "json":
        return structlog.processors.JSONRenderer(default=str)
    return structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)


def setup_logging(form: str = "auto", *, level: int = logging.INFO, stream: Any = None) -> None:
    """Send this process's logs, those of libraries included, to standard error. May be called again to change the format.

    Args:
        form: ``console``, ``json``, or ``auto``: console in a terminal, else JSON.
        level: The lowest level that is shown.
        stream: Where to write instead.
    """
    stream = stream or sys.stderr
    terminal = bool(stream.isatty())
    form = ("console" if terminal else "json") if form == "auto" else form
    shared: Sequence[Processor] = (
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    )
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(stream)
    handler.set_name("reattach")
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact, _renderer(form, terminal)],
        )
    )
    root = logging.getLogger()
    root.handlers = [h for h in root.handlers if h.get_name() != "reattach"] + [handler]
    root.setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "asyncio", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(max(level, logging.WARNING))

"""Logs: readable or JSON, and never a secret."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from reattach.obs.log import redact_text, redact_value, setup_logging

SECRETS = [
    "Authorization: Bearer abc.def-123_~+/=",
    "basic dXNlcjpwYXNz",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF",
    "GET /events?ticket=abcdef&after=3",
    "https://x/?a=1&token=abc123",
    "redis://user:hunter2@host:6379/0",
    "rediss://:hunter2@host",
    "OPENAI_API_KEY=sk-proj-abcdefgh12345678",
    "password=hunter2",
    "the ticket tkt_abcdef-m3Vc0bQZr5uJqk8 was",
]
LEAKS = ("abc", "dXNl", "eyJ", "hunter2", "sk-", "abcdef")


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """The set-up is global: put it back."""
    root, config = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.configure(**config)


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_are_blanked_by_their_form(text: str) -> None:
    """Wherever they stand, the rest stays readable."""
    shown = redact_text(f"before {text} after")
    assert shown.startswith("before ") and "after" in shown and "[redacted]" in shown
    assert not [leak for leak in LEAKS if leak in shown], shown


def test_ordinary_text_stays_as_it_is() -> None:
    """Ids, paths and sentences are no secrets."""
    for text in ("run_0701k3v9x2m4q7r8s5t6w0y1z2:184", "GET /agent-runs", "http://127.0.0.1:8080", "monkey=1", "redis://host:6379/0"):
        assert redact_text(text) == text


def test_secrets_are_blanked_by_their_name() -> None:
    """At any depth, whatever their type; bytes never show."""
    value = {"payload": {"a": 1}, "Idempotency-Key": "k", "ok": [{"token": 5, "n": 1}], "raw": b"x"}
    assert redact_value("x", value) == {
        "payload": "[redacted]", "Idempotency-Key": "[redacted]", "ok": [{"token": "[redacted]", "n": 1}], "raw": "[redacted]",
    }  # fmt: skip


def test_long_text_is_shortened() -> None:
    """A log line is no place for a document."""
    assert len(redact_text("x" * 1_000_000)) < 20_000


def logged(form: str) -> str:
    """Log one of each kind; what was written."""
    out = io.StringIO()
    setup_logging(form, stream=out)
    structlog.get_logger("reattach.test").info("something", run_id="run_1", token="hunter2")
    logging.getLogger("some.library").warning("url %s", "redis://u:hunter2@h")
    try:
        raise ValueError("password=hunter2")
    except ValueError:
        structlog.get_logger("reattach.test").exception("failed")
    return out.getvalue()


@pytest.mark.parametrize("form", ["json", "auto"])
def test_a_pipe_gets_json_lines(form: str) -> None:
    """One object a line, libraries and tracebacks included, secrets not."""
    text = logged(form)
    first, second, third = [json.loads(line) for line in text.splitlines()]
    assert (first["event"], first["level"], first["logger"], first["run_id"]) == ("something", "info", "reattach.test", "run_1")
    assert (second["logger"], second["level"]) == ("some.library", "warning")
    assert "Traceback" in third["exception"] and "ValueError" in third["exception"]
    assert "hunter2" not in text and first["timestamp"].endswith("Z")


def test_a_person_gets_lines_to_read() -> None:
    """The same, aligned; still no secrets."""
    text = logged("console")
    assert "something" in text and "run_id=run_1" in text and "Traceback" in text
    assert "hunter2" not in text and not text.startswith("{")


def test_setting_up_twice_does_not_log_twice() -> None:
    """The last set-up counts."""
    logged("json")
    assert len(logged("json").splitlines()) == 3


def test_levels() -> None:
    """Debug lines and chatty libraries only when asked for."""
    out = io.StringIO()
    setup_logging("json", stream=out)
    structlog.get_logger("reattach.test").debug("hidden")
    logging.getLogger("uvicorn.error").info("hidden")
    assert out.getvalue() == ""
    setup_logging("json", level=logging.DEBUG, stream=out)
    structlog.get_logger("reattach.test").debug("shown")
    assert "shown" in out.getvalue()

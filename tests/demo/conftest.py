"""What the demo's tests need: a data folder of their own, and no model unless a test sets one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reattach.demo.tickets import Tickets

from .provider import Provider


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No model is set, text flows without pauses, the database is the test's own."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "REATTACH_DEMO_API", "REATTACH_DEMO_MODEL", "REATTACH_DEMO_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REATTACH_DATA", str(tmp_path / "demo"))
    monkeypatch.setenv("REATTACH_DEMO_SPEED", "0")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def tickets(environment: None) -> Tickets:
    """The tickets that the agents of this test work on."""
    return Tickets()


@pytest.fixture
def use_model(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Set a model as a user does: ``use_model(provider, "chat")``."""

    def use(provider: Provider, api: str = "chat", **more: str) -> None:
        values = {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "sk-very-secret-4711", "REATTACH_DEMO_API": api, **more}
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return use

"""What may never be read in a log: every credential, key and text that the tests send is remembered, and every log is searched for it.

Secrets are noticed by themselves: `make_client` shows each request to `Secrecy.sent` and each answer to `Secrecy.answered`. Logs are those
of the product in this process, as it would have written them, and those of the processes that tests start.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

LEAST: Final = 20
"""Shorter texts are no secrets: they are in every log by chance."""

_CREDENTIALS: Final = ("authorization", "cookie", "idempotency-key")
_NAMES: Final = re.compile(
    r"(?:run|ses|session|msg|call|input|claim|wait)_[0-9a-zA-Z_]+(?::\d+)?|/.*|[a-z]+(?:[._:/-][a-z0-9]+)*|\d[\d.TZ:-]*"
)
"""Texts that name things and may be logged: ids, paths, types, agents, times."""
_WORDS: Final = re.compile(rf"[A-Za-z0-9_.~+/-]{{{LEAST},}}")


class Secrecy:
    """Secrets and logs of one test process.

    Attributes:
        own: The secrets of the test that runs now.
    """

    def __init__(self) -> None:
        self.own: dict[str, str] = {}
        self._all: dict[str, str] = {}
        self._texts: list[str] = []
        self._words: set[str] = set()

    def keep(self, secret: str, what: str) -> str:
        """Remember a secret; the secret."""
        if len(secret) >= LEAST and secret not in self.own:
            self.own[secret] = what
        return secret

    def sent(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> None:
        """Remember what a request carries that is nobody's business."""
        for name in _CREDENTIALS:
            if name in headers:
                value = headers[name]
                self.keep(value.removeprefix("Bearer ").removeprefix("bearer "), f"{name} of {method} {path}")
        for pair in query.split("&"):
            name, _, value = pair.partition("=")
            if name == "ticket":
                self.keep(value, f"ticket of {method} {path}")
        for text in texts_in(body):
            self.keep(text, f"body of {method} {path}")

    def answered(self, path: str, body: bytes) -> None:
        """Remember what the API hands out in confidence."""
        if path.endswith("/tickets"):
            for text in texts_in(body):
                self.keep(text, f"answer of {path}")

    def credentials_in(self, text: str) -> list[str]:
        """Which credentials of this test are in an answer that is for anybody's eyes: a problem, or the metrics."""
        return sorted(what for secret, what in self.own.items() if what.startswith((*_CREDENTIALS, "ticket")) and secret in text)

    def logged(self, text: str) -> None:
        """Take a piece of a log."""
        self._texts.append(text)

    def check(self) -> None:
        """Search what was logged since the last time for the secrets of this test.

        Raises:
            AssertionError: One of them is there.
        """
        text, self._texts = "\n".join(self._texts), []
        own, self.own = self.own, {}
        self._all.update(own)
        self._words.update(_WORDS.findall(text))
        found = {what for secret, what in own.items() if secret in text}
        assert not found, f"secrets in logs: {sorted(found)}"

    def check_all(self) -> None:
        """Compare all words of all logs with all secrets of all tests, whenever each was there.

        Raises:
            AssertionError: One of them is there.
        """
        self.check()
        found = {self._all[word] for word in self._words if word in self._all}
        assert not found, f"secrets in logs: {sorted(found)}"


def texts_in(body: bytes) -> Iterator[str]:
    """The texts in a JSON body that name nothing."""
    try:
        value = json.loads(body) if body[:1] in (b"{", b"[") else None
    except (ValueError, RecursionError):
        return
    yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= LEAST and _NAMES.fullmatch(value) is None:
            yield value
    elif isinstance(value, dict):
        for member in cast(dict[str, Any], value).values():
            yield from _texts(member)
    elif isinstance(value, list):
        for member in cast(list[Any], value):
            yield from _texts(member)


SECRECY: Final = Secrecy()
"""Of this test process."""

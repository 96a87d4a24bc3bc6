"""Which model answers, from the environment.

=========================  ==================================================================================================
variable                   meaning
=========================  ==================================================================================================
``OPENAI_BASE_URL``        e.g. ``http://localhost:11434/v1``; without it, and with a key: ``https://api.openai.com/v1``
``OPENAI_API_KEY``         sent to that address only; local endpoints often need none
``REATTACH_DEMO_MODEL``    the model's name; default ``gpt-5-mini``
``REATTACH_DEMO_API``      ``responses``, ``chat``, ``messages``, or ``data``: answer from the data although a key is set.
                           Default: ``responses`` for OpenAI's hosts, ``messages`` for Anthropic's, ``chat`` for all others
``REATTACH_DEMO_TIMEOUT``  longest silence of the endpoint, seconds; default 60
=========================  ==================================================================================================

With neither address nor key the demo answers from its data and connects to nothing.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

import httpx
import msgspec

from .chat import CHAT
from .dialect import Dialect
from .messages import MESSAGES
from .responses import RESPONSES

DIALECTS: Final[dict[str, Dialect]] = {dialect.name: dialect for dialect in (RESPONSES, CHAT, MESSAGES)}
FROM_DATA: Final = "data"
OPENAI: Final = "https://api.openai.com/v1"
_HOSTS: Final = ((re.compile(r"(.+\.)?openai\.(com|azure\.com)"), RESPONSES), (re.compile(r"(.+\.)?anthropic\.com"), MESSAGES))


class BadSetting(Exception):
    """A variable has a value that the demo cannot use; the text says what it can."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how to ask.

    Attributes:
        url: The whole address of the protocol's one operation.
        key: Empty where none is needed.
        silence: Longest wait for the next byte, seconds.
    """

    url: str
    key: str
    model: str
    dialect: Dialect
    silence: float

    def __repr__(self) -> str:
        return f"Endpoint({self.dialect.name}, {self.model})"


def from_environment(environment: Mapping[str, str] | None = None) -> Endpoint | None:
    """The endpoint that is set; None when the demo shall answer from its data.

    Raises:
        BadSetting: A variable has a value of no use.
    """
    env = os.environ if environment is None else environment
    key, base = (env.get(name, "").strip() for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"))
    api = env.get("REATTACH_DEMO_API", "").strip()
    if api and api != FROM_DATA and api not in DIALECTS:
        raise BadSetting(f"REATTACH_DEMO_API is one of {', '.join([*DIALECTS, FROM_DATA])}")
    if api == FROM_DATA or not (key or base):
        return None
    if re.fullmatch(r"[!-~]*", key) is None:
        raise BadSetting("OPENAI_API_KEY holds characters that cannot be in a header")
    address = _address(base or OPENAI)
    dialect = DIALECTS.get(api) or _usual(address.host)
    return Endpoint(
        url=str(address.copy_with(path=address.path.rstrip("/") + dialect.path)),
        key=key,
        model=env.get("REATTACH_DEMO_MODEL", "").strip() or "gpt-5-mini",
        dialect=dialect,
        silence=_seconds(env.get("REATTACH_DEMO_TIMEOUT", "").strip() or "60"),
    )


def _usual(host: str) -> Dialect:
    return next((dialect for pattern, dialect in _HOSTS if pattern.fullmatch(host)), CHAT)


def _address(base: str) -> httpx.URL:
    try:
        address = httpx.URL(base)
    except httpx.InvalidURL:
        address = httpx.URL("")
    if address.scheme not in ("http", "https") or not address.host or not 0 < (address.port or 1) < 65536:
        raise BadSetting("OPENAI_BASE_URL is an http or https address, e.g. http://localhost:11434/v1")
    return address


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 3600:
        raise BadSetting("REATTACH_DEMO_TIMEOUT is a number of seconds, more than 0 and at most 3600")
    return seconds

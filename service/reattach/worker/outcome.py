"""How a handler's end becomes a run's end.

===================  =================================================================================================
code                 when
===================  =================================================================================================
the product's own    the handler raised `RunFailed`
an error's ``code``  it raised one of Reattach's errors: ``effect_failed``, ``effect_unresolved``, ``nondeterminism`` …
``invalid_outcome``  it returned something that has no JSON form or is too large
``handler_error``    it raised anything else
===================  =================================================================================================

The message of a ``handler_error`` is the exception's class and text, cut to 500 characters; the traceback goes to the log only.
"""

import re
from typing import Any, Final

import msgspec

from ..core.errors import ReattachError
from ..core.payload import to_json

HANDLER_ERROR: Final = "handler_error"
INVALID_OUTCOME: Final = "invalid_outcome"
MAX_MESSAGE: Final = 500
CODE_PATTERN: Final = r"^[a-z][a-z0-9_.-]{0,63}$"


class RunFailed(Exception):
    """Raised by a handler to end its run as failed, with a code that its clients know."""

    def __init__(self, code: str, message: str = "") -> None:
        """Say how the run failed.

        Args:
            code: Stable, for programs; lower-case letters, digits and ``_ . -``, at most 64 characters.
            message: For people. Clients see it: no secrets.

        Raises:
            ValueError: The code is outside its alphabet.
        """
        if re.fullmatch(CODE_PATTERN[1:-1], code) is None:
            raise ValueError(f"a failure's code matches {CODE_PATTERN}, which {code!r} does not")
        super().__init__(code, message)
        self.code = code
        self.message = message or code


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What a run shall end as: a state with an outcome or an error, as JSON text."""

    state: str
    outcome: bytes | None = None
    error: bytes | None = None


CANCELLED: Final = Ending(state="cancelled")


def clip(text: str) -> str:
    """Text that fits into an error: cut, and free of what UTF-8 cannot carry."""
    return text[:MAX_MESSAGE].encode("utf-8", "replace").decode()


def error_json(code: str, message: str) -> bytes:
    """The error object of events and snapshots."""
    return msgspec.json.encode({"code": code, "message": clip(message)})


def described(error: BaseException) -> str:
    """Class and text of an exception, for people."""
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def succeeded(value: Any, max_bytes: int) -> Ending:
    """The ending of a handler that returned.

    Args:
        value: Any JSON value, or something msgspec can turn into one.
        max_bytes: Largest size of its JSON.
    """
    try:
        return Ending(state="succeeded", outcome=to_json(value, max_bytes=max_bytes, what="outcome", want_object=False))
    except ReattachError as e:
        return Ending(state="failed", error=error_json(INVALID_OUTCOME, e.detail))


def failed(error: BaseException) -> Ending:
    """The ending of a handler that raised."""
    if isinstance(error, RunFailed):
        return Ending(state="failed", error=error_json(error.code, error.message))
    if isinstance(error, ReattachError):
        return Ending(state="failed", error=error_json(error.code, error.detail))
    return Ending(state="failed", error=error_json(HANDLER_ERROR, described(error)))

"""What can go wrong between here and a model, in words that are safe to show: never the key, never a body.

=======================  =====================================================  =========
code                     when                                                   try again
=======================  =====================================================  =========
``unreachable``          no connection                                          yes
``timeout``              the endpoint was silent for too long                   yes
``rate_limited``         429                                                    yes
``overloaded``           408, 5xx, or the provider said so in the stream        yes
``refused_credentials``  401, 403                                               no
``refused_request``      any other status, or no event stream                   no
``failed``               the provider reported an error in the middle           no
``malformed``            a chunk is not what the protocol says                  no
``cut``                  the stream ended before the turn did                   yes
=======================  =====================================================  =========

"Try again" holds only as long as nothing of the turn was used.
"""

from typing import Final

from .pieces import ModelFailed

RETRYABLE: Final = frozenset({"unreachable", "timeout", "rate_limited", "overloaded", "cut"})


class MalformedChunk(Exception):
    """A chunk is not what the protocol says."""


class ModelError(Exception):
    """The model's turn failed."""

    def __init__(self, failed: ModelFailed, *, retry_after: float | None = None) -> None:
        """Wrap a failure.

        Args:
            failed: What happened.
            retry_after: Seconds the endpoint asked to wait.
        """
        super().__init__(f"{failed.code}: {failed.message}")
        self.failed = failed
        self.retry_after = retry_after

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed, if nothing of this turn was used yet."""
        return self.failed.code in RETRYABLE


CUT: Final = ModelFailed("cut", "the model's stream ended in the middle of its turn")


def by_status(status: int) -> ModelFailed:
    """The failure that an HTTP status means."""
    if status in (401, 403):
        return ModelFailed("refused_credentials", f"the model endpoint refused the credentials (HTTP {status})")
    if status == 429:
        return ModelFailed("rate_limited", "the model endpoint takes no more requests at the moment (HTTP 429)")
    if status == 408 or status >= 500:
        return ModelFailed("overloaded", f"the model endpoint cannot answer at the moment (HTTP {status})")
    return ModelFailed("refused_request", f"the model endpoint did not accept the request (HTTP {status})")


def by_report(kind: str | None) -> ModelFailed:
    """The failure that a provider reported inside the stream; `kind` is its own short code for it."""
    word = kind if kind is not None and kind.isascii() and kind.replace("_", "").isalnum() and len(kind) <= 64 else "no code"
    if word == "rate_limit_exceeded" or word == "rate_limit_error" or word == "429":
        return ModelFailed("rate_limited", f"the model's provider takes no more requests at the moment ({word})")
    if word in ("overloaded_error", "server_error", "api_error", "timeout_error") or (word.isdigit() and int(word) >= 500):
        return ModelFailed("overloaded", f"the model's provider cannot answer at the moment ({word})")
    return ModelFailed("failed", f"the model's provider reported an error in the middle of its answer ({word})")

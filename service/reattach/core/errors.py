"""The one error tree.

::

    ReattachError
    ├── MalformedRequest      400 malformed_request
    ├── Unauthenticated       401 unauthenticated
    ├── Forbidden             403 forbidden
    ├── NotFound              404 not_found
    │   ├── RunNotFound       404 run_not_found
    │   └── SessionNotFound   404 session_not_found
    ├── MethodNotAllowed      405 method_not_allowed
    ├── NotAcceptable         406 not_acceptable
    ├── PayloadTooLarge       413 payload_too_large
    ├── UnsupportedMediaType  415 unsupported_media_type
    ├── InvalidRequest        422 invalid_request
    ├── IdempotencyKeyReused  422 idempotency_key_reused
    ├── TooManyRequests       429 too_many_requests
    ├── HeadTooLarge          431 head_too_large
    ├── WaitNotOpen           409 wait_not_open
    ├── SessionBusy           409 session_busy
    ├── SessionExists         409 session_exists
    ├── CursorError
    │   ├── MalformedCursor   400 malformed_cursor
    │   ├── CursorRunMismatch 400 cursor_run_mismatch
    │   ├── CursorSessionMismatch 400 cursor_session_mismatch
    │   ├── FutureCursor      416 future_cursor
    │   └── CursorExpired     410 cursor_expired
    ├── WorkError             (the worker SDK's side of the store)
    │   ├── LeaseLost         409 lease_lost
    │   ├── RunClosed         409 run_closed
    │   ├── BatchGap          409 batch_gap
    │   ├── EffectFailed      409 effect_failed
    │   ├── EffectUnresolved  409 effect_unresolved
    │   └── Nondeterminism    409 nondeterminism
    ├── StoreUnavailable      503 store_unavailable
    ├── TooManyStreams        503 too_many_streams
    ├── AuthUnavailable       503 auth_unavailable
    └── InternalError         500 internal_error

Every class carries a stable ``code``, an HTTP ``status`` and whether a caller may try the same call again
(``retryable``). The first line of its docstring is its title. Only ``http.problems`` turns one into a response.
"""

from typing import Any, ClassVar


class ReattachError(Exception):
    """Something Reattach was asked for could not be done."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, detail: str = "", *, retry_after: float | None = None, **extra: Any) -> None:
        """Describe one failure.

        Args:
            detail: What was wrong and what is allowed, for a person. Never contains a secret or a payload.
            retry_after: Seconds after which the same call may succeed.
            extra: Members of the problem document beyond the standard ones.
        """
        self.detail = detail or self.title()
        self.retry_after = retry_after
        self.extra = extra
        super().__init__(self.detail)

    @classmethod
    def title(cls) -> str:
        """The first line of the class's docstring: the same for every failure of the kind."""
        return (cls.__doc__ or cls.__name__).strip().splitlines()[0]


class MalformedRequest(ReattachError):
    """The bytes received are not an HTTP request."""

    code, status = "malformed_request", 400


class Unauthenticated(ReattachError):
    """The request carries no valid credential."""

    code, status = "unauthenticated", 401


class Forbidden(ReattachError):
    """The caller may not do this."""

    code, status = "forbidden", 403


class NotFound(ReattachError):
    """There is nothing at this address."""

    code, status = "not_found", 404


class RunNotFound(NotFound):
    """There is no such run."""

    code = "run_not_found"


class SessionNotFound(NotFound):
    """There is no such session."""

    code = "session_not_found"


class MethodNotAllowed(ReattachError):
    """This address does not take this method."""

    code, status = "method_not_allowed", 405


class NotAcceptable(ReattachError):
    """None of the media types in Accept can be served here."""

    code, status = "not_acceptable", 406


class PayloadTooLarge(ReattachError):
    """The body or payload is larger than allowed."""

    code, status = "payload_too_large", 413


class UnsupportedMediaType(ReattachError):
    """The body is not application/json."""

    code, status = "unsupported_media_type", 415


class InvalidRequest(ReattachError):
    """The request is not valid."""

    code, status = "invalid_request", 422


class IdempotencyKeyReused(ReattachError):
    """This idempotency key was already used with another body."""

    code, status = "idempotency_key_reused", 422


class TooManyRequests(ReattachError):
    """A rate or count limit was reached."""

    code, status, retryable = "too_many_requests", 429, True


class HeadTooLarge(ReattachError):
    """The request's address and headers are larger than allowed."""

    code, status = "head_too_large", 431


class WaitNotOpen(ReattachError):
    """The run is not waiting under this wait_id."""

    code, status = "wait_not_open", 409


class SessionBusy(ReattachError):
    """A run of this session is active, and the session's policy takes no other one now."""

    code, status = "session_busy", 409


class SessionExists(ReattachError):
    """There is a session of this name already, with other facts."""

    code, status = "session_exists", 409


class CursorError(ReattachError):
    """The cursor cannot be resumed from."""

    code, status = "malformed_cursor", 400


class MalformedCursor(CursorError):
    """The cursor is not a sequence or an event id."""

    code, status = "malformed_cursor", 400


class CursorRunMismatch(CursorError):
    """The cursor names another run."""

    code, status = "cursor_run_mismatch", 400


class CursorSessionMismatch(CursorError):
    """The cursor names another session."""

    code, status = "cursor_session_mismatch", 400


class FutureCursor(CursorError):
    """The cursor is ahead of the latest event."""

    code, status = "future_cursor", 416


class CursorExpired(CursorError):
    """The events after this cursor are no longer kept."""

    code, status = "cursor_expired", 410


class WorkError(ReattachError):
    """A worker's operation was refused."""

    code, status = "run_closed", 409


class LeaseLost(WorkError):
    """Another worker owns the run now."""

    code = "lease_lost"


class RunClosed(WorkError):
    """The run has ended; nothing can be added to it."""

    code = "run_closed"


class BatchGap(WorkError):
    """A batch before this one is missing."""

    code = "batch_gap"


class EffectFailed(WorkError):
    """The tool failed."""

    code = "effect_failed"


class EffectUnresolved(WorkError):
    """Whether the tool took effect is unknown."""

    code = "effect_unresolved"


class Nondeterminism(WorkError):
    """The handler asked for something else at the same place than in an earlier attempt."""

    code = "nondeterminism"


class StoreUnavailable(ReattachError):
    """The store cannot be reached or does not accept the operation now."""

    code, status, retryable = "store_unavailable", 503, True


class TooManyStreams(ReattachError):
    """This process serves as many streams as it may."""

    code, status, retryable = "too_many_streams", 503, True


class AuthUnavailable(ReattachError):
    """Whether the caller may cannot be found out now."""

    code, status, retryable = "auth_unavailable", 503, True


class InternalError(ReattachError):
    """Something unexpected went wrong in the service."""


def every_error() -> list[type[ReattachError]]:
    """All classes of the tree, parents before children; for the tables in the docs and the OpenAPI document."""
    found: list[type[ReattachError]] = []
    todo: list[type[ReattachError]] = [ReattachError]
    while todo:
        cls = todo.pop(0)
        found.append(cls)
        # A layer above may refine an error for its own use; clients know those of this module.
        todo.extend(child for child in cls.__subclasses__() if child.__module__ == __name__)
    return found

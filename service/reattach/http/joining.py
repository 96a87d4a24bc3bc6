"""Whether somebody may add a run to a session."""

from ..core.errors import Forbidden, SessionNotFound
from ..core.session import as_run
from .auth import permitted
from .service import Call


async def check_joining(call: Call, session_id: str | None) -> None:
    """Let a caller add a run only to a session that they may read: its policy may cancel others' runs for it, or hold them back.

    Raises:
        Forbidden: There is such a session, and they may not.
        StoreUnavailable: Redis cannot be reached.
    """
    if session_id is None:
        return
    try:
        record = await call.service.store.sessions.find(call.principal.tenant, session_id)
    except SessionNotFound:
        return
    if not await permitted(call.service.authorizer, call.principal, "read", as_run(record)):
        raise Forbidden("this session is somebody else's: only who may read it may add runs to it", field="session_id")

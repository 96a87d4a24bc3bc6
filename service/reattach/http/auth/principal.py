"""Who asks, and whether they may: the two seams."""

from typing import Literal, Protocol, runtime_checkable

import msgspec
from starlette.requests import Request

from ...core.errors import Unauthenticated
from ...core.run import RunRecord

Action = Literal["create", "list", "read", "cancel", "input", "limits", "work"]


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who a request comes from. Runs belong to the tenant; the subject is their initiator.

    Attributes:
        scopes: What the credential was given besides what a subject may do to its own runs.
        expires_at: When the credential ends, Unix seconds; None: never. Its open streams end at most one keep-alive interval later.
        issued_at: When the credential was made, Unix seconds, as far as it says so: what a revocation counts from.
        session: The login that the credential belongs to, as far as it says so.
        run_id: The only run it is for, and only for reading: a ticket. None: no such bound.
    """

    tenant: str
    subject: str
    scopes: frozenset[str] = frozenset()
    expires_at: float | None = None
    issued_at: float | None = None
    session: str | None = None
    run_id: str | None = None


class InvalidCredential(Unauthenticated):
    """The request carries no valid credential.

    It carries one, which does not count: clients are told to get another (RFC 6750 section 3.1).
    """


class Authenticator(Protocol):
    """Finds out who a request comes from."""

    async def authenticate(self, request: Request) -> Principal:
        """The request's principal.

        Raises:
            Unauthenticated: It carries no valid credential.
            Forbidden: It comes from where nobody may ask.
        """
        ...


class Authorizer(Protocol):
    """Decides what a principal may do. Other tenants' runs never get this far: they do not exist for the caller."""

    async def may(self, principal: Principal, action: Action, record: RunRecord | None) -> bool:
        """Whether the principal may do this to this run (None: to no run in particular). Asked again while a stream is open.

        ``work`` is asked for a worker in another language: without a run when it asks for one, then with the run it would be given, and
        with everything it does to it. ``create`` is asked with the run as it would be: without a `run_id`, and with an empty
        `resource_scope` where it is about nothing but itself.
        """
        ...


@runtime_checkable
class SeesScopes(Protocol):
    """What an authorizer may have besides `may`: a rule of its own for events about something else than their run."""

    async def may_see(self, principal: Principal, record: RunRecord, scope: str) -> bool:
        """Whether the payload of an event of this `resource_scope` is shown to somebody who may read its run."""
        ...


async def permitted(authorizer: Authorizer, principal: Principal, action: Action, record: RunRecord | None) -> bool:
    """Whether a principal may do this, whatever the authorizer says: to another tenant's run never; by a ticket, read its run."""
    if record is not None and record.tenant != principal.tenant:
        return False
    if principal.run_id is not None and (action != "read" or record is None or record.run_id != principal.run_id):
        return False
    return await authorizer.may(principal, action, record)


async def visible(authorizer: Authorizer, principal: Principal, record: RunRecord, scope: str) -> bool:
    """Whether somebody who may read a run is shown its events about something else.

    An authorizer without a rule for it is asked as if the whole run were about that.
    """
    if isinstance(authorizer, SeesScopes):
        return await authorizer.may_see(principal, record, scope)
    return await authorizer.may(principal, "read", msgspec.structs.replace(record, resource_scope=scope))

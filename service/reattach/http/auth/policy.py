"""Reattach's own policy: the tenant first, then who started a run, then scopes.

Other tenants' runs never get here: they do not exist for the caller (`principal.permitted`).
"""

from collections.abc import Mapping
from typing import Final, Literal

from ...core.run import RunRecord
from .principal import Action, Principal
from .scopes import beneath, granted, paths

Rule = Literal["everybody", "initiator", "scope"]
"""Who may, besides whoever has a scope that covers it: everybody of the tenant; who started the run; nobody."""

POLICY: Final[Mapping[Action, Rule]] = {
    "create": "everybody",
    "list": "everybody",
    "limits": "everybody",
    "read": "initiator",
    "cancel": "initiator",
    "input": "initiator",
    "work": "scope",
}
"""Who may do what. An action that is not here is allowed to nobody. A listing shows only what its reader may read."""


class OwnPolicy:
    """What holds where no other policy is set."""

    async def may(self, principal: Principal, action: Action, record: RunRecord | None) -> bool:
        """Whether the principal may do this, see `POLICY`.

        A run that is to be created with a `resource_scope` of its own
        choice must lie in a ``create:PATH`` scope where the caller has any.
        """
        rule = POLICY.get(action)
        if rule is None:
            return False
        if action == "create":
            return _may_create(principal, None if record is None else record.resource_scope)
        if rule == "everybody" or (rule == "initiator" and record is not None and record.initiator == principal.subject):
            return True
        return granted(principal.scopes, action, None if record is None else record.resource_scope)

    async def may_see(self, principal: Principal, record: RunRecord, scope: str) -> bool:
        """Whether the payload of an event of this `resource_scope` is shown to somebody who may read its run.

        Who started the run may see what lies in the run's own scope; beyond it only a scope helps.
        """
        if record.initiator == principal.subject and beneath(scope, record.resource_scope):
            return True
        return granted(principal.scopes, "read", scope)


def _may_create(principal: Principal, scope: str | None) -> bool:
    given = paths(principal.scopes, "create")
    if not scope or not given or None in given:
        return True
    return any(path is not None and beneath(scope, path) for path in given)

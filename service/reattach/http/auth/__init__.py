"""Who asks, and whether they may."""

from .bind import check_bind
from .development import DEVELOPMENT_SUBJECT, DEVELOPMENT_TENANT, DevelopmentAuthenticator, DevelopmentAuthorizer
from .expiry import left
from .hosts import is_loopback, names
from .policy import POLICY, OwnPolicy
from .principal import Action, Authenticator, Authorizer, InvalidCredential, Principal, permitted, visible
from .ticketed import facts_for, identify, lifetime_for

__all__ = [
    "DEVELOPMENT_SUBJECT",
    "DEVELOPMENT_TENANT",
    "POLICY",
    "Action",
    "Authenticator",
    "Authorizer",
    "DevelopmentAuthenticator",
    "DevelopmentAuthorizer",
    "InvalidCredential",
    "OwnPolicy",
    "Principal",
    "check_bind",
    "facts_for",
    "identify",
    "is_loopback",
    "left",
    "lifetime_for",
    "names",
    "permitted",
    "visible",
]

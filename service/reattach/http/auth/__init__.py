"""Who asks, and whether they may."""

from .bind import check_bind
from .development import DEVELOPMENT_SUBJECT, DEVELOPMENT_TENANT, DevelopmentAuthenticator, DevelopmentAuthorizer
from .hosts import is_loopback, names
from .policy import POLICY, OwnPolicy
from .principal import Action, Authenticator, Authorizer, Principal, permitted, visible

__all__ = [
    "DEVELOPMENT_SUBJECT",
    "DEVELOPMENT_TENANT",
    "POLICY",
    "Action",
    "Authenticator",
    "Authorizer",
    "DevelopmentAuthenticator",
    "DevelopmentAuthorizer",
    "OwnPolicy",
    "Principal",
    "check_bind",
    "is_loopback",
    "names",
    "permitted",
    "visible",
]

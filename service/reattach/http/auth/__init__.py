"""Who asks, and whether they may."""

from .bind import check_bind
from .development import DEVELOPMENT_SUBJECT, DEVELOPMENT_TENANT, DevelopmentAuthenticator, DevelopmentAuthorizer
from .hosts import is_loopback, names
from .principal import Action, Authenticator, Authorizer, Principal, permitted

__all__ = [
    "DEVELOPMENT_SUBJECT",
    "DEVELOPMENT_TENANT",
    "Action",
    "Authenticator",
    "Authorizer",
    "DevelopmentAuthenticator",
    "DevelopmentAuthorizer",
    "Principal",
    "check_bind",
    "is_loopback",
    "names",
    "permitted",
]

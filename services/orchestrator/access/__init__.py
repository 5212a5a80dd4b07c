"""Who may do what: the owner's password, sessions, API tokens, scopes, and the record of access."""

from services.orchestrator.access.logins import Logins
from services.orchestrator.access.principal import Principal, principal_of
from services.orchestrator.access.scopes import ScopeGuard
from services.orchestrator.access.tokens import ApiTokens

__all__ = ["ApiTokens", "Logins", "Principal", "ScopeGuard", "principal_of"]

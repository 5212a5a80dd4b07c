"""Who acts, in the words of the record."""

from __future__ import annotations

from services.orchestrator.access.principal import Principal


def decider(principal: Principal) -> str:
    """``owner`` for a person at the page, ``token:<name>`` for a program."""
    return f"token:{principal.name}" if principal.kind == "token" else "owner"

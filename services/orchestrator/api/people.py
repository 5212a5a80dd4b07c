"""Who acts, in the words of the record."""

from __future__ import annotations

from crew.v1 import auth_pb2


def decider(principal: auth_pb2.Principal) -> str:
    """``owner`` for a person at the page, ``token:<name>`` for a program."""
    return f"token:{principal.name}" if principal.kind == "token" else "owner"

"""Whether somebody is there for a turn: who is not looked at by anybody has a limit (FLD-008)."""

from __future__ import annotations

# Where a person types and reads the answer.
_PEOPLE = frozenset({"chat", "telegram", "web"})
# The system's own beginnings of turns, and programs over gRPC.
_NOBODY = ("job:", "delegate:", "memory:", "grpc:")


def attended(source: str, autonomous: bool) -> bool:
    """Whether a person attends the turn that a message of this source opens.

    A label that came with `Inbound` may be a person's or a program's. In an autonomous conversation
    nobody has to be there for it to go on, so there it counts as unattended.

    Args:
        source: Of the message that opened the turn.
        autonomous: Of its conversation, when the turn begins.
    """
    if source in _PEOPLE:
        return True
    return not (autonomous or source == "job" or source.startswith(_NOBODY))

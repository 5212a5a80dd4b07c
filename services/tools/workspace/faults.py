"""What can stand in the way of a file operation, before it is put into words."""

from __future__ import annotations

from typing import Literal

FaultKind = Literal[
    # Refused whatever anybody says.
    "outside",
    "private",
    "not_writable_here",
    "bad_path",
    "swapped",
    # Facts about the file that the caller can act on.
    "missing",
    "is_directory",
    "not_directory",
    "special",
    "link_loop",
    "denied",
    "read_only",
    "name_too_long",
    "no_space",
    "changed_meanwhile",
]
# Rules that nobody can approve away (TLS-048, TLS-198).
_HARD: frozenset[FaultKind] = frozenset({"outside", "private", "not_writable_here", "bad_path", "swapped"})


class WorkspaceFault(Exception):
    """A file operation that did not happen.

    Args:
        kind: What stood in the way.
        path: As the caller wrote it.
        about: What a sentence of this kind names besides, such as the paths that are allowed.
    """

    def __init__(self, kind: FaultKind, path: str, about: str = "") -> None:
        super().__init__(f"{kind}: {path!r}")
        self.kind: FaultKind = kind
        self.path = path
        self.about = about

    @property
    def hard(self) -> bool:
        """Whether a rule refused it and not a state of the file."""
        return self.kind in _HARD

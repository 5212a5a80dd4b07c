"""Text that arrives in pieces, made storable on the way (FLD-014)."""

from __future__ import annotations

from services.common.storable import storable


class TextPieces:
    """Joins pieces of text.

    A character outside the basic plane may be cut into two escapes that arrive in two pieces: a
    high surrogate at the end of a piece waits for the next.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._waiting = ""
        self.replaced = 0

    def feed(self, piece: str) -> str:
        """Add a piece and return what can be shown of it."""
        piece = self._waiting + piece
        self._waiting = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._waiting = piece[:-1], piece[-1]
        return self._add(piece)

    def flush(self) -> str:
        """End the text and return what was still waiting."""
        piece, self._waiting = self._waiting, ""
        return self._add(piece)

    @property
    def empty(self) -> bool:
        """Whether no character has come."""
        return not self._pieces

    def ends_with(self, char: str) -> bool:
        """Whether `char` is the last character, blanks apart, as far as the last piece tells."""
        return not self.empty and self._pieces[-1].rstrip()[-1:] in (char, "")

    @property
    def so_far(self) -> str:
        """Everything that has come."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def _add(self, piece: str) -> str:
        if not piece:
            return ""
        piece, replaced = storable(piece)
        self.replaced += replaced
        self._pieces.append(piece)
        return piece

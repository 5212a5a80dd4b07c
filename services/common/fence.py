"""Marking text that outsiders wrote as material to read.

Fenced text stands between two lines that carry the same random number. The text can not know the
number beforehand, so it can not close its own fence and go on in the voice of the system; a number
that happens to stand in the text is not used.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Fence:
    """The two lines around one piece of outside text.

    Attributes:
        label: What the text is, in words of the product: never a name an outsider chose.
        number: Fresh for every fence.
    """

    label: str
    number: str

    @property
    def opening(self) -> str:
        """The line before the text."""
        return f"<<<{self.number} {self.label}"

    @property
    def closing(self) -> str:
        """The line after the text."""
        return f"{self.number}>>>"

    @property
    def chars(self) -> int:
        """What the two lines and their line breaks cost of a ceiling."""
        return len(self.opening) + len(self.closing) + 2

    def around(self, text: str) -> str:
        """`text` between the two lines.

        Raises:
            ValueError: The text holds this fence's number.
        """
        if self.number in text:
            raise ValueError("the text holds the number of its own fence")
        return f"{self.opening}\n{text}\n{self.closing}"


def fence_for(text: str, label: str) -> Fence:
    """A fence that `text` can not close."""
    while True:
        number = "".join(secrets.choice("0123456789") for _ in range(_DIGITS))
        if number not in text:
            return Fence(label, number)


def fenced(text: str, label: str) -> str:
    """`text` between the two lines of a fresh fence."""
    return fence_for(text, label).around(text)

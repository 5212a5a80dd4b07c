"""What the doctor found: one line each, and for what is wrong the way to repair it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from services.cli.texts import language, texts

# good: as it should be; note: works, could be better; bad: something does not work until it is done.
State = Literal["good", "note", "bad"]
MARKS = {"good": "✓", "note": "·", "bad": "✗"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the page.

    Attributes:
        state: How it is.
        key: Below ``doctor.`` in the catalogue: ``<key>``, and ``<key>_do`` for what to do.
        values: What the texts name. Never a secret.
    """

    state: State
    key: str
    values: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The line, and the advice below it when there is one."""
        words = texts()
        shown = [f"{MARKS[self.state]} {words.text(language(), f'doctor.{self.key}', **self.values)}"]
        if self.state != "good" and words.has(f"doctor.{self.key}_do"):
            shown.append(f"    → {words.text(language(), f'doctor.{self.key}_do', **self.values)}")
        return shown


def good(key: str, **values: Any) -> Finding:
    """As it should be."""
    return Finding("good", key, values)


def note(key: str, **values: Any) -> Finding:
    """Works, and could be better."""
    return Finding("note", key, values)


def bad(key: str, **values: Any) -> Finding:
    """Does not work until something is done."""
    return Finding("bad", key, values)

"""Conditions that stop a start, told in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.common.wording import Catalogue, Locale, load


@dataclass(frozen=True, slots=True)
class Phrase:
    """Part of a sentence whose language is chosen when the sentence is made."""

    key: str
    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, catalogue: Catalogue, locale: Locale) -> str:
        """The phrase, inner phrases included."""
        filled = {
            name: value.text(catalogue, locale) if isinstance(value, Phrase) else value
            for name, value in self.values.items()
        }
        return catalogue.text(locale, self.key, **filled)


class StartError(Exception):
    """The process cannot start; nothing was served and nothing was left half started.

    Args:
        key: Catalogue key of the sentence, which names what to do.
        catalogue: Where the key is; the common catalogue when not given.
        values: What the sentence names. Never a secret.
    """

    def __init__(self, key: str, /, *, catalogue: Catalogue | None = None, **values: object) -> None:
        super().__init__(key)
        self.key = key
        self.values = values
        self._catalogue = catalogue

    def text(self, locale: Locale) -> str:
        """The sentence for the person who started it."""
        return Phrase(self.key, self.values).text(self._catalogue or load("common"), locale)

    def __str__(self) -> str:
        return self.text("en")

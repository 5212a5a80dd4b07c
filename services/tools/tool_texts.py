"""The texts of one tool: what the model is told of it, and what it says itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.common.wording import Locale, load

# The parts of a description, in the order in which they are read (PIP-006): when to use the tool,
# what it cannot do, what to prefer to it, what comes back, what it costs in time.
PARTS = ("use", "limits", "prefer", "returns", "time")
REQUIRED_PARTS = ("use", "limits", "returns")


class ToolTexts:
    """Looks up the texts under ``tool.<name>`` of the service's catalogue.

    Args:
        name: Of the tool.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._catalogue = load("tools")

    def description(self, locale: Locale) -> str:
        """The whole description, examples at its end (PIP-007)."""
        parts = [self.of(locale, f"description.{part}") for part in PARTS if self.has(f"description.{part}")]
        text = " ".join(parts)
        examples = self.examples(locale)
        if not examples:
            return text
        heading = self._catalogue.text(locale, "tool_examples")
        return "\n".join([text, heading, *examples])

    def examples(self, locale: Locale) -> Sequence[str]:
        """Example calls, each the JSON text of its arguments."""
        if not self.has("examples"):
            return ()
        return [line for line in self.of(locale, "examples").splitlines() if line.strip()]

    def parameter(self, locale: Locale, name: str, **schema: Any) -> Mapping[str, Any]:
        """The schema of a parameter with its description."""
        return {**schema, "description": self.of(locale, f"parameters.{name}")}

    def of(self, locale: Locale, key: str, **values: object) -> str:
        """The text under ``tool.<name>.<key>``."""
        return self._catalogue.text(locale, f"tool.{self._name}.{key}", **values)

    def has(self, key: str) -> bool:
        """Whether there is a text under ``tool.<name>.<key>``."""
        return self._catalogue.has(f"tool.{self._name}.{key}")

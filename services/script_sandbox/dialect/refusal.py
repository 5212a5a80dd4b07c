"""A script that is not in the language, told by line and with what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.common.wording import Locale, load


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing in a script that is not in the language.

    Attributes:
        line: From 1, where the construct begins.
        column: From 0; of two faults of a line the first is told.
        key: Catalogue key below `refused`, of what is not available and what to write instead.
        values: What the sentence names, short.
    """

    line: int
    column: int
    key: str
    values: Mapping[str, object] = field(default_factory=dict)


class Refused(Exception):
    """The script does not begin (SCR-172)."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.key)
        self.fault = fault

    @property
    def line(self) -> int:
        """From 1."""
        return self.fault.line

    def text(self, locale: Locale) -> str:
        """ "Not run: line N: …" in `locale` (SCR-173)."""
        texts = load("script_sandbox")
        reason = texts.text(locale, f"refused.{self.fault.key}", **self.fault.values)
        return texts.text(locale, "not_run", line=self.line, reason=reason)

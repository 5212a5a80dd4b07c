"""Taking arguments apart, for hosts that are called with nobody in front of them (PIP-127)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.common.toolhost.contract import Arguments, ToolError
from services.common.wording import Locale, load


class BadArgument(ToolError):
    """An argument that does not fit what the tool published."""

    def __init__(self, locale: Locale, name: str, problem: str, **values: object) -> None:
        text = load("tools").text(locale, f"error.argument.{problem}", name=name, **values)
        super().__init__(text)


def text(arguments: Arguments, name: str, locale: Locale, default: str | None = None) -> str:
    """A text argument.

    Raises:
        BadArgument: It is missing without a default, or no text.
    """
    value = arguments.get(name, default)
    if value is None:
        raise BadArgument(locale, name, "required")
    if not isinstance(value, str):
        raise BadArgument(locale, name, "text")
    return value


def whole_number(
    arguments: Arguments, name: str, locale: Locale, *, least: int, default: int | None = None
) -> int | None:
    """A whole number of at least `least`.

    Raises:
        BadArgument: It is no such number (TLS-221).
    """
    value = arguments.get(name, default)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadArgument(locale, name, "whole_number", least=least)
    if value < least:
        raise BadArgument(locale, name, "whole_number", least=least)
    return value


def switch(arguments: Arguments, name: str, locale: Locale) -> bool:
    """True or false; false when it is not given.

    Raises:
        BadArgument: It is neither.
    """
    value = arguments.get(name, False)
    if not isinstance(value, bool):
        raise BadArgument(locale, name, "switch")
    return value


def items(arguments: Arguments, name: str, locale: Locale, most: int) -> Sequence[Mapping[str, Any]]:
    """A list of 1 to `most` objects.

    Raises:
        BadArgument: It is no such list.
    """
    value = arguments.get(name)
    if (
        not isinstance(value, list)
        or not 1 <= len(value) <= most
        or not all(isinstance(item, Mapping) for item in value)
    ):
        raise BadArgument(locale, name, "items", most=most)
    return value

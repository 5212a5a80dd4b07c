"""What a run step keeps of a call's texts (TRN-294 to 302)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.common.toolhost import exact_json
from services.common.wording import Locale, load

_KEPT_OUTPUT = 160
_WHOLE_ERROR = 600
_ERROR_HEAD = 200
_ERROR_TAIL = 400
_KEPT_ARGUMENTS = 12
_KEPT_CHARS = 160


def step_output(text: str, *, ok: bool) -> str:
    """A result on one line: 160 characters of a success, both ends of a long error."""
    line = " ".join(text.split())
    if ok:
        return line if len(line) <= _KEPT_OUTPUT else f"{line[:_KEPT_OUTPUT]}…"
    if len(line) <= _WHOLE_ERROR:
        return line
    return f"{line[:_ERROR_HEAD]}…{line[-_ERROR_TAIL:]}"


def step_arguments(arguments_json: str, locale: Locale) -> dict[str, str]:
    """The first twelve parameters, name and value cut, and how many more there are."""
    try:
        arguments = exact_json.loads_object(arguments_json)
    except ValueError:
        return {}
    kept = {
        name[:_KEPT_CHARS]: _written(value)[:_KEPT_CHARS]
        for name, value in list(arguments.items())[:_KEPT_ARGUMENTS]
    }
    left = len(arguments) - _KEPT_ARGUMENTS
    if left > 0:
        kept["…"] = load("orchestrator").text(locale, "calls.step.more_arguments", count=left)
    return kept


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return exact_json.dumps(value if not isinstance(value, Mapping) else dict(value))

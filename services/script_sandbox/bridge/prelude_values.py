"""The numbers and sentences that the prelude is begun with."""

from __future__ import annotations

import dataclasses
from typing import Any

from crew.v1 import script_sandbox_pb2 as pb

from services.common.wording import Locale, load
from services.script_sandbox import limits as fixed
from services.script_sandbox.limits import Limits

_PREFIX = "prelude."


def prelude_values(start: pb.ScriptStart, limits: Limits, locale: Locale) -> dict[str, Any]:
    """The arguments of `__begin`, by the names that its call is made with."""
    numbers = {
        name: value for name, value in dataclasses.asdict(limits).items() if isinstance(value, int)
    } | {
        "format_width": fixed.FORMAT_WIDTH,
        "lookup_chars": fixed.LOOKUP_CHARS,
        "search_results": fixed.SEARCH_RESULTS,
        "question_chars": fixed.QUESTION_CHARS,
        "summary_chars": fixed.SUMMARY_CHARS,
        "store_key_chars": fixed.STORE_KEY_CHARS,
    }
    texts = load("script_sandbox")
    sentences = {
        key.removeprefix(_PREFIX): texts.text(locale, key, **numbers) for key in texts.keys(locale, _PREFIX)
    }
    return {
        "__limits_given": numbers,
        "__texts_given": sentences,
        "__llm_given": start.llm_enabled,
        "__store_given": start.store_available,
    }

"""Reading what a reviewer said: strictly, since whatever is unclear has to ask."""

from __future__ import annotations

import json
import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from services.common.shown_text import shown
from services.common.wording import Locale

_REASON_CHARS = 500
_ANSWER_CHARS = 8_000
# Models like to put JSON into a code block.
_FENCE = re.compile(r"\A```[a-z]*\n(?P<inside>.*)\n```\Z", re.DOTALL)


class Answer(BaseModel):
    """The one object a reviewer answers with."""

    model_config = ConfigDict(extra="ignore", strict=True)

    verdict: Literal["allow", "ask", "deny"]
    reason: str = ""
    instead: str = ""


def read_answer(text: str, locale: Locale) -> Answer | None:
    """The answer in `text`, its words made fit to be shown; None when it cannot be read with certainty.

    The object has to be the whole answer: a verdict found somewhere in prose, or one of two, could
    be a piece of the arguments that the model repeated.
    """
    text = text.strip()
    if len(text) > _ANSWER_CHARS:
        return None
    if found := _FENCE.match(text):
        text = found["inside"]
    try:
        answer = Answer.model_validate(json.loads(text, object_pairs_hook=_once))
    except (ValueError, ValidationError, RecursionError):
        return None
    return answer.model_copy(
        update={"reason": _line(answer.reason, locale), "instead": _line(answer.instead, locale)}
    )


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _line(text: str, locale: Locale) -> str:
    return shown(" ".join(text.split())[:_REASON_CHARS], locale)

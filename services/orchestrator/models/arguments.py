"""Whether the arguments of a call are a JSON object, and where they broke if not (TRN-128)."""

from __future__ import annotations

import orjson

from services.orchestrator.models.contract import BrokenArguments

# Characters shown on each side of the spot.
CONTEXT_CHARS = 24
_TYPES = {list: "list", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}


def checked_arguments(text: str, *, truncated: bool) -> tuple[str, BrokenArguments | None]:
    """Return the JSON text of the arguments and, if they are no object, why.

    Blank arguments are ``{}`` (TRN-129); so is the text of broken ones, which is not kept.

    Args:
        text: As the model wrote it.
        truncated: The reply hit the output limit inside this call (TRN-130).
    """
    text = text.strip()
    if not text:
        return "{}", _stopped(text) if truncated else None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return "{}", _broken(text, error.pos, truncated)
    if isinstance(value, dict):
        return text, None
    return "{}", BrokenArguments(
        length=len(text),
        position=0,
        context=_around(text, 0),
        truncated=False,
        key="models.broken.wrong_type",
        values={"type": _TYPES[type(value)], "length": len(text)},
    )


def is_object(text: str) -> bool:
    """Whether `text` is the whole JSON text of an object."""
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _broken(text: str, position: int, truncated: bool) -> BrokenArguments:
    if truncated:
        return _stopped(text)
    position = min(position, len(text))
    context = _around(text, position)
    return BrokenArguments(
        length=len(text),
        position=position,
        context=context,
        truncated=False,
        key="models.broken.not_json",
        values={"length": len(text), "position": position, "context": context},
    )


def _stopped(text: str) -> BrokenArguments:
    context = _around(text, len(text))
    return BrokenArguments(
        length=len(text),
        position=len(text),
        context=context,
        truncated=True,
        key="models.broken.truncated",
        values={"length": len(text), "context": context},
    )


def _around(text: str, position: int) -> str:
    piece = text[max(0, position - CONTEXT_CHARS) : position + CONTEXT_CHARS]
    return "".join(char if char.isprintable() else f"<U+{ord(char):04X}>" for char in piece)

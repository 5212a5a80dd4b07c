"""JSON whose numbers keep the digits they were written with.

Arguments and details pass from the model to a tool and back to a person unchanged: ``1.10`` stays
``1.10`` and ``12345678901234567890.5`` loses nothing, although Python's own numbers would (PIP-070).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

import orjson

_INT64 = range(-(2**63), 2**63)


class WrittenFloat(float):
    """A float that remembers how it was written."""

    text: str


class WrittenInt(int):
    """An integer that remembers how it was written; used where orjson's 64 bits end."""

    text: str


def loads(text: str) -> Any:
    """Parse strict JSON.

    Raises:
        ValueError: Not JSON, nested too deeply, or it holds half of a surrogate pair, which no
            later JSON, file or database could carry.
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if "\\u" in text:
        dumps(value)
    return value


def loads_object(text: str) -> dict[str, Any]:
    """Parse strict JSON with an object at the root; empty text is an empty object.

    Raises:
        ValueError: As `loads`, or the root is not an object.
    """
    if not text:
        return {}
    value = loads(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def dumps(value: object) -> str:
    """Write compact JSON, numbers of `loads` with their own digits.

    Raises:
        ValueError: The value holds something JSON has no form for.
    """
    try:
        return orjson.dumps(value, default=_written, option=orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    except TypeError as error:
        raise ValueError(str(error)) from None


def _written(value: object) -> object:
    if isinstance(value, WrittenFloat | WrittenInt):
        return orjson.Fragment(value.text)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"no JSON form for {type(value).__name__}")


def _float(text: str) -> float:
    value = WrittenFloat(text)
    value.text = text
    return value


def _int(text: str) -> int:
    value = int(text)
    if value in _INT64 and text != "-0":
        return value
    written = WrittenInt(value)
    written.text = text
    return written


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_float, parse_int=_int, parse_constant=_refuse)

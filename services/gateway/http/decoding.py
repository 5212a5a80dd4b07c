"""JSON bodies, paths and queries as messages, with sentences a person can act on.

Nothing here names a protobuf type: a fault names the field and what it takes (GTW-038).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from services.common.api import raw_json_empty
from services.common.errors import Invalid, NotApplicable
from services.gateway.http.encoding import enum_names

UPDATE_MASK = "update_mask"
_WHOLE: Mapping[int, tuple[int, int]] = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_REAL = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)
# No number of a request has more digits than this; reading longer ones costs quadratic time.
_MAX_DIGITS = 400


class Digits:
    """A number of a JSON text, as it was written."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object in `body`; an empty body is an empty object. Numbers stay `Digits`.

    Raises:
        NotApplicable: It is no JSON (400): not UTF-8, a syntax fault, NaN, a name twice in one
            object, nested too deep.
        Invalid: It is JSON, but not an object (422).
    """
    if not body.strip():
        return {}
    try:
        tree = json.loads(
            body.decode("utf-8"),
            parse_int=Digits,
            parse_float=Digits,
            parse_constant=_no_constant,
            object_pairs_hook=_no_name_twice,
        )
    except UnicodeDecodeError:
        raise NotApplicable("NOT_UTF8", "error.body.not_utf8") from None
    except json.JSONDecodeError as fault:
        raise NotApplicable(
            "NOT_JSON", "error.body.not_json", line=fault.lineno, column=fault.colno
        ) from None
    except RecursionError:
        raise NotApplicable("TOO_DEEP", "error.body.too_deep") from None
    if not isinstance(tree, dict):
        raise Invalid("NOT_AN_OBJECT", "error.body.not_an_object")
    return tree


def _no_constant(name: str) -> None:
    raise NotApplicable("NOT_JSON", "error.body.constant", name=name)


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotApplicable("NAME_TWICE", "error.body.name_twice", name=_short(twice))
    return tree


def fill(message: Message, tree: Mapping[str, Any], where: str = "") -> None:
    """Set the fields of `message` that `tree` names. A null is the same as leaving the field out.

    Args:
        message: A fresh request.
        tree: What `parse_object` read.
        where: Path of `message` in the body, with a dot at its end.

    Raises:
        Invalid: A name that does not exist, or a value its field does not take (422).
    """
    fields: Mapping[str, Any] = message.DESCRIPTOR.fields_by_name
    for name, value in tree.items():
        field = fields.get(name)
        if field is None or name == UPDATE_MASK:
            known = ", ".join(sorted(set(fields) - {UPDATE_MASK})) or "-"
            raise Invalid(
                "UNKNOWN_FIELD", "error.body.unknown_field", field=where + _short(name), known=known
            )
        if value is not None:
            _set(message, field, value, where + name)


def fill_query(message: Message, pairs: list[tuple[str, str]], taken: tuple[str, ...]) -> None:
    """Set fields of `message` from a query string; unknown names and empty values are passed over.

    Args:
        message: A request whose path fields are set.
        pairs: Names and values in the order they came; the last one of a single-valued name counts.
        taken: Fields that the path has set, which the query cannot change.

    Raises:
        Invalid: A value its field does not take (422).
    """
    many: dict[str, list[str]] = {}
    for name, text in pairs:
        if name not in taken and text:
            many.setdefault(name, []).append(text)
    for name, texts in many.items():
        field: Any = message.DESCRIPTOR.fields_by_name.get(name)
        if field is None or field.type == FieldDescriptor.TYPE_MESSAGE:
            continue
        values = [_from_query(field, text) for text in texts]
        _set(message, field, values if field.is_repeated else values[-1], name)


def _from_query(field: FieldDescriptor, text: str) -> Any:
    if field.type in _WHOLE or field.type in _REAL:
        return Digits(text) if _NUMBER.fullmatch(text) else text
    if field.type == FieldDescriptor.TYPE_BOOL:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    return text


def _set(message: Message, field: FieldDescriptor, value: Any, where: str) -> None:
    if field.is_repeated:
        if not isinstance(value, list):
            raise _wrong(where, "list")
        target = getattr(message, field.name)
        for index, item in enumerate(value):
            place = f"{where}[{index}]"
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                fill(target.add(), _object(item, place), f"{place}.")
            else:
                target.append(_scalar(field, item, place))
    elif field.type == FieldDescriptor.TYPE_MESSAGE:
        child = getattr(message, field.name)
        child.SetInParent()
        fill(child, _object(value, where), f"{where}.")
    else:
        setattr(message, field.name, _scalar(field, value, where))


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(where, "object")
    return value


def _scalar(field: FieldDescriptor, value: Any, where: str) -> Any:
    if raw_json_empty(field) is not None:
        return _raw(value, where)
    if field.type in _WHOLE:
        return _whole(value, where, *_WHOLE[field.type])
    if field.type in _REAL:
        return _real(value, where)
    reader = _READERS.get(field.type)
    if reader is not None:
        return reader(value, where)
    if field.enum_type is not None:
        return _enum(field.enum_type, value, where)
    raise ValueError(f"{field.full_name} has no form in JSON requests")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(where, "text")
    if "\0" in value:
        raise Invalid("NUL_CHARACTER", "error.body.nul", field=where)
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise Invalid("HALF_CHARACTER", "error.body.surrogate", field=where) from None
    return value


def _bool(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(where, "bool")
    return value


_READERS: Mapping[int, Callable[[Any, str], Any]] = {
    FieldDescriptor.TYPE_STRING: _text,
    FieldDescriptor.TYPE_BOOL: _bool,
}


def _whole(value: Any, where: str, least: int, most: int) -> int:
    number = _real(value, where, "whole")
    if isinstance(value, Digits) and value.text.strip().lstrip("-").isdecimal():
        exact = int(value.text)
    elif number.is_integer():
        exact = int(number)
    else:
        raise _wrong(where, "whole")
    if not least <= exact <= most:
        raise Invalid("OUT_OF_RANGE", "error.body.range", field=where, least=least, most=most)
    return exact


def _real(value: Any, where: str, kind: str = "number") -> float:
    if not isinstance(value, Digits) or len(value.text) > _MAX_DIGITS:
        raise _wrong(where, kind)
    try:
        number = float(value.text)
    except ValueError:
        raise _wrong(where, kind) from None
    if number in (float("inf"), float("-inf")) or number != number:
        raise _wrong(where, kind)
    return number


def _enum(enum: EnumDescriptor, value: Any, where: str) -> int:
    names = {name: number for number, name in enum_names(enum).items()}
    if not isinstance(value, str) or value not in names:
        raise Invalid("NOT_A_CHOICE", "error.body.choice", field=where, choices=", ".join(names))
    return names[value]


def _raw(value: Any, where: str) -> str:
    try:
        return orjson.dumps(value, default=_digits).decode()
    except orjson.JSONEncodeError:
        raise Invalid("UNREADABLE", "error.body.raw", field=where) from None


def _digits(value: object) -> orjson.Fragment:
    if isinstance(value, Digits):
        return orjson.Fragment(value.text)
    raise TypeError(type(value).__name__)


def _wrong(where: str, kind: str) -> Invalid:
    return Invalid("WRONG_TYPE", f"error.body.wrong.{kind}", field=where)


def _short(name: str) -> str:
    """A name from outside as it may stand in a sentence."""
    return "".join(c if c.isprintable() else "?" for c in name[:60])

"""Messages as JSON: snake_case names, numbers as numbers, what is unset as null, raw JSON inlined.

The JSON form of protobuf itself would write 64-bit numbers as strings, leave unset fields out and
quote raw JSON, so the way out is here, one small function for each field of a type, made once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import orjson
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from services.common.api import omits_unset, raw_json_empty

_Encode = Callable[[Any], Any]
# What no JSON text holds outside strings but as blanks, and an SSE line must not hold.
_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")
_NULL = orjson.Fragment(b"null")


def encode(message: Message) -> dict[str, Any]:
    """`message` as a tree for `to_json`."""
    omitted = _omitted(message.DESCRIPTOR)
    return {
        name: of(message)
        for name, of in _fields(message.DESCRIPTOR)
        if name not in omitted or message.HasField(name)
    }


def encode_field(message: Message, field: FieldDescriptor) -> Any:
    """One field of `message` as a tree for `to_json`."""
    return _reader(field)(message)


def to_json(tree: Any) -> bytes:
    """JSON text of a tree, on one line. What is not finite becomes null."""
    return orjson.dumps(tree)


@cache
def _fields(descriptor: Descriptor) -> tuple[tuple[str, _Encode], ...]:
    return tuple((field.name, _reader(field)) for field in descriptor.fields)


@cache
def _omitted(descriptor: Descriptor) -> frozenset[str]:
    return frozenset(field.name for field in descriptor.fields if omits_unset(field))


@cache
def _reader(field: FieldDescriptor) -> _Encode:
    name = field.name
    value = _value(field)
    if field.is_repeated:
        return lambda message: [value(item) for item in getattr(message, name)]
    if field.has_presence:
        return lambda message: value(getattr(message, name)) if message.HasField(name) else None
    return lambda message: value(getattr(message, name))


def _value(field: FieldDescriptor) -> _Encode:
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return encode
    if field.enum_type is not None:
        return enum_names(field.enum_type).__getitem__
    if (empty := raw_json_empty(field)) is not None:
        return lambda text: raw_json(text or empty)
    if field.type == FieldDescriptor.TYPE_BYTES:
        raise ValueError(f"{field.full_name}: bytes have no JSON form here")
    return lambda value: value


def enum_names(enum: EnumDescriptor) -> dict[int, str]:
    """How JSON writes the values of an enum: in lower case, without the enum's name in front."""
    prefix = "".join(f"_{c}" if c.isupper() else c.upper() for c in enum.name).lstrip("_") + "_"
    return {value.number: value.name.removeprefix(prefix).lower() for value in enum.values}


def raw_json(text: str) -> orjson.Fragment:
    """`text` to stand inside JSON as it is, every digit kept.

    What is not JSON after all becomes null, so that stored text can never change the shape of an
    answer around it.
    """
    try:
        json.loads(text, parse_int=_keep, parse_float=_keep, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _NULL
    return orjson.Fragment(text.encode().translate(_LINE_BREAKS))


def _keep(digits: str) -> str:
    return digits


def _refuse(name: str) -> None:
    raise ValueError(name)

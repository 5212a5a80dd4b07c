"""Lossless conversion of primitives to what the schema names (PIP-015)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from services.common.toolhost import exact_json
from services.orchestrator.calls.arguments.schema import Node, Schema, type_of

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,300})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,4})?")


def converted(schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `arguments` with omitted nulls and converted primitives, nothing else changed."""
    value = convert(schema, schema.root, dict(arguments))
    assert isinstance(value, dict)
    return value


def convert(schema: Schema, node: Node, value: Any) -> Any:
    """A copy of `value` converted to what stands at `node`."""
    node = schema.resolve(node)
    if isinstance(node, bool):
        return value
    if isinstance(value, Mapping):
        return _convert_object(schema, node, value)
    if isinstance(value, list):
        return _convert_array(schema, node, value)
    return _convert_primitive(schema, node, value)


def _convert_object(schema: Schema, node: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    properties = node.get("properties", {})
    required = node.get("required", ())
    result: dict[str, Any] = {}
    for name, inner in value.items():
        known = properties.get(name)
        if known is None:
            result[name] = inner
        elif inner is None and name not in required and "null" not in schema.types(known):
            continue
        else:
            result[name] = convert(schema, known, inner)
    return result


def _convert_array(schema: Schema, node: Mapping[str, Any], value: list[Any]) -> list[Any]:
    items = node.get("items")
    if not isinstance(items, Mapping):
        return list(value)
    return [convert(schema, items, inner) for inner in value]


def _convert_primitive(schema: Schema, node: Mapping[str, Any], value: Any) -> Any:
    """The one other form of `value` that the schema names, when there is exactly one."""
    admitted = schema.types(node)
    if type_of(value) in admitted:
        return _whole(value) if "number" not in admitted else value
    forms: list[Any] = []
    match value:
        case str():
            number = _NUMBER if "number" in admitted else _INTEGER if "integer" in admitted else None
            if number is not None and number.fullmatch(value):
                forms.append(exact_json.loads(value))
            if "boolean" in admitted and value in {"true", "false"}:
                forms.append(value == "true")
        case bool() | int() | float():
            if "string" in admitted:
                forms.append(exact_json.dumps(value))
    return forms[0] if len(forms) == 1 else value


def _whole(value: Any) -> Any:
    """A number like 5.0 as the integer it is, where the schema knows integers only."""
    if isinstance(value, float) and not isinstance(value, bool) and abs(value) < 2**53:
        return int(value)
    return value

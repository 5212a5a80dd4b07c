"""Bending arguments to the schema for three shapes that models get wrong (TLS-075 to 080).

A list sent as the JSON text of that list, a list of one sent as its element, and a list of objects
whose only object was spread into the call. Each is repaired only when the schema admits exactly one
reading; it reads the published schema and knows no tool by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.common.toolhost import exact_json
from services.orchestrator.calls.arguments.convert import convert, converted
from services.orchestrator.calls.arguments.schema import Node, Schema

# Longer text is not taken for the JSON of a list.
_LONGEST_LIST_TEXT = 2_000_000


def repaired(schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """`arguments` with the three shapes repaired, or as they are when they fit."""
    if schema.accepts(converted(schema, arguments)):
        return dict(arguments)
    value = _repair(schema, schema.root, dict(arguments))
    assert isinstance(value, dict)
    return value


def _repair(schema: Schema, node: Node, value: Any) -> Any:
    node = schema.resolve(node)
    if isinstance(node, bool):
        return value
    if isinstance(value, Mapping):
        return _repair_object(schema, node, value)
    if isinstance(value, list) and isinstance(node.get("items"), Mapping):
        return [_repair(schema, node["items"], inner) for inner in value]
    return value


def _repair_object(schema: Schema, node: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Node] = node.get("properties", {})
    result = {
        name: _as_list(schema, properties[name], inner) if name in properties else inner
        for name, inner in value.items()
    }
    result = _gathered(schema, node, result)
    return {
        name: _repair(schema, properties[name], inner) if name in properties else inner
        for name, inner in result.items()
    }


def _as_list(schema: Schema, node: Node, value: Any) -> Any:
    """The list that `value` stands for where only a list may stand."""
    node = schema.resolve(node)
    if isinstance(node, bool) or isinstance(value, list) or value is None:
        return value
    if schema.types(node) - {"null"} != {"array"}:
        return value
    readings: list[list[Any]] = []
    written = _list_in(value)
    if written is not None and _fits(schema, node, written):
        readings.append(written)
    if _fits(schema, node, [value]):
        readings.append([value])
    return readings[0] if len(readings) == 1 else value


def _list_in(value: Any) -> list[Any] | None:
    if not isinstance(value, str) or len(value) > _LONGEST_LIST_TEXT or not value.lstrip().startswith("["):
        return None
    try:
        parsed = exact_json.loads(value.strip())
    except ValueError:
        return None
    return parsed if isinstance(parsed, list) else None


def _gathered(schema: Schema, node: Mapping[str, Any], value: dict[str, Any]) -> dict[str, Any]:
    """Fields that belong to the one object of the one list the call still lacks, put into it."""
    properties: Mapping[str, Node] = node.get("properties", {})
    spread = {name: inner for name, inner in value.items() if name not in properties}
    if not spread:
        return value
    readings = []
    for name, known in properties.items():
        if name in value:
            continue
        target = schema.resolve(known)
        if isinstance(target, bool) or schema.types(target) - {"null"} != {"array"}:
            continue
        item = schema.resolve(target.get("items", True))
        if isinstance(item, bool) or not spread.keys() <= item.get("properties", {}).keys():
            continue
        if _fits(schema, target, [spread]):
            readings.append(name)
    if len(readings) != 1:
        return value
    kept = {name: inner for name, inner in value.items() if name not in spread}
    return {**kept, readings[0]: [spread]}


def _fits(schema: Schema, node: Mapping[str, Any], value: list[Any]) -> bool:
    return schema.node_accepts(node, convert(schema, node, value))

"""How to call a tool, on one line: ``name(a: string, b?: integer)`` (TLS-081)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.orchestrator.calls.arguments.schema import ALL_TYPES, Node, Schema, compiled

_MOST_ITEMS_SHOWN = 30


def signature(name: str, schema: Schema) -> str:
    """The parameters of a tool with their types, required ones first as the schema has them."""
    required = schema.root.get("required", ())
    parts = [
        f"{parameter}{'' if parameter in required else '?'}: {_type(schema, node, depth=2)}"
        for parameter, node in list(schema.root.get("properties", {}).items())[:_MOST_ITEMS_SHOWN]
    ]
    return f"{name}({', '.join(parts)})"


def call_line(name: str, parameters: Mapping[str, Any], *, most: int) -> str:
    """The same with plain types and at most `most` parameters; a ``…`` stands for the others.

    Where some are left out, required ones stay before optional ones (SCR-023).

    Raises:
        ValueError: `parameters` is no JSON Schema.
    """
    schema = compiled(parameters)
    required = schema.root.get("required", ())
    names = list(schema.root.get("properties", {}).items())
    if len(names) > most:
        names.sort(key=lambda parameter: parameter[0] not in required)
    parts = [
        f"{parameter}{'' if parameter in required else '?'}: {_type(schema, node, depth=0)}"
        for parameter, node in names[:most]
    ]
    return f"{name}({', '.join([*parts, '…'] if len(names) > most else parts)})"


def type_name(schema: Schema, node: Node) -> str:
    """The JSON type of a parameter, such as ``string`` or ``integer | null``."""
    return _type(schema, node, depth=0)


def _type(schema: Schema, node: Node, depth: int) -> str:
    node = schema.resolve(node)
    types = schema.types(node)
    if isinstance(node, bool) or types == ALL_TYPES:
        return "any"
    names = []
    for name in sorted(types - ({"integer"} if "number" in types else set())):
        if name == "array" and depth and "items" in node:
            names.append(f"{_type(schema, node['items'], depth - 1)}[]")
        elif name == "object" and depth and node.get("properties"):
            needed = node.get("required", ())
            inner = ", ".join(
                f"{key}{'' if key in needed else '?'}: {_type(schema, value, depth - 1)}"
                for key, value in list(node["properties"].items())[:_MOST_ITEMS_SHOWN]
            )
            names.append(f"{{{inner}}}")
        else:
            names.append(name)
    return " | ".join(names)

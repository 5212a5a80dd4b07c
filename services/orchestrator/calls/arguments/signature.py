"""How to call a tool, on one line: ``name(a: string, b?: integer)`` (TLS-081)."""

from __future__ import annotations

from services.orchestrator.calls.arguments.schema import ALL_TYPES, Node, Schema

_MOST_ITEMS_SHOWN = 30


def signature(name: str, schema: Schema) -> str:
    """The parameters of a tool with their types, required ones first as the schema has them."""
    required = schema.root.get("required", ())
    parts = [
        f"{parameter}{'' if parameter in required else '?'}: {_type(schema, node, depth=2)}"
        for parameter, node in list(schema.root.get("properties", {}).items())[:_MOST_ITEMS_SHOWN]
    ]
    return f"{name}({', '.join(parts)})"


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

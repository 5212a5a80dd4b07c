"""A tool's published schema, compiled once and asked many times (PIP-123)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import jsonschema_rs

from services.common.toolhost import exact_json

JsonType = Literal["null", "boolean", "integer", "number", "string", "array", "object"]
ALL_TYPES: frozenset[JsonType] = frozenset(
    {"null", "boolean", "integer", "number", "string", "array", "object"}
)

Node = Mapping[str, Any] | bool

_MOST_FAULTS = 20
_MOST_REFERENCES = 32


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which arguments do not fit.

    `key` and `values` make its sentence; `path` is dotted, "" for the root.
    """

    path: str
    key: str
    values: Mapping[str, object]


class Schema:
    """The schema of one tool's parameters.

    Unknown parameters are faults unless the schema says otherwise itself (PIP-015).
    """

    def __init__(self, text: str) -> None:
        self.root: Mapping[str, Any] = json.loads(text)
        closed = dict(self.root)
        if not {"additionalProperties", "patternProperties", "unevaluatedProperties"} & closed.keys():
            closed["additionalProperties"] = False
        self._validator = jsonschema_rs.validator_for(closed)

    def accepts(self, arguments: Any) -> bool:
        """Whether `arguments` fit as they are."""
        return bool(self._validator.is_valid(_plain(arguments)))

    def faults(self, arguments: Any) -> list[Fault]:
        """What does not fit, at most twenty faults."""
        found: list[Fault] = []
        for error in self._validator.iter_errors(_plain(arguments)):
            found.extend(_faults_of(error, self.root))
            if len(found) >= _MOST_FAULTS:
                break
        return found[:_MOST_FAULTS]

    def node_accepts(self, node: Node, value: Any) -> bool:
        """Whether a part of the schema accepts `value`."""
        return bool(_part_validator(exact_json.dumps(self._standalone(node))).is_valid(_plain(value)))

    def resolve(self, node: Node) -> Node:
        """`node` with references into this schema followed."""
        for _ in range(_MOST_REFERENCES):
            if isinstance(node, bool) or not isinstance(node.get("$ref"), str):
                return node
            target: Any = self.root
            reference = node["$ref"]
            if not reference.startswith("#"):
                return True
            for part in reference.lstrip("#").split("/")[1:]:
                name = part.replace("~1", "/").replace("~0", "~")
                if not isinstance(target, Mapping) or name not in target:
                    return True
                target = target[name]
            node = target
        return True

    def types(self, node: Node) -> frozenset[JsonType]:
        """The types a value may have where `node` stands; every type when that is not said."""
        return self._types(node, _MOST_REFERENCES)

    def _types(self, node: Node, depth: int) -> frozenset[JsonType]:
        node = self.resolve(node)
        if isinstance(node, bool) or depth == 0:
            return ALL_TYPES
        admitted = ALL_TYPES
        declared = node.get("type")
        if declared is not None:
            names = [declared] if isinstance(declared, str) else list(declared)
            admitted = frozenset(name for name in names if name in ALL_TYPES)
            if "number" in admitted:
                admitted |= {"integer"}
        elif "enum" in node:
            admitted = frozenset(type_of(value) for value in node["enum"])
        elif "const" in node:
            admitted = frozenset({type_of(node["const"])})
        for union in ("anyOf", "oneOf"):
            if isinstance(node.get(union), Sequence):
                admitted &= frozenset().union(*(self._types(each, depth - 1) for each in node[union]))
        for each in node.get("allOf", ()):
            admitted &= self._types(each, depth - 1)
        return admitted

    def _standalone(self, node: Node) -> Node:
        if isinstance(node, bool):
            return node
        definitions = {name: self.root[name] for name in ("$defs", "definitions") if name in self.root}
        return {**definitions, **node}


def compiled(parameters: Mapping[str, Any]) -> Schema:
    """The schema of `parameters`, compiled at most once.

    Raises:
        ValueError: It is no JSON Schema.
    """
    return _compiled(exact_json.dumps(parameters))


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Schema:
    return Schema(text)


@lru_cache(maxsize=4096)
def _part_validator(text: str) -> Any:
    return jsonschema_rs.validator_for(json.loads(text))


def type_of(value: object) -> JsonType:
    """The JSON type of a parsed value; a number without fraction is an integer."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def _plain(value: Any) -> Any:
    """`value` in Python's own types, which are all the validator knows."""
    match value:
        case bool() | None:
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case str():
            return str(value)
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case _:
            return value


def _faults_of(error: Any, root: Mapping[str, Any]) -> Iterator[Fault]:
    path = _dotted(error.instance_path)
    kind = error.kind
    name = type(kind).__name__
    match name:
        case "Required":
            yield Fault(_dotted([*error.instance_path, kind.property]), "required", {})
        case "AdditionalProperties" | "UnevaluatedProperties":
            allowed = ", ".join(_allowed(error, root))
            for unexpected in kind.unexpected:
                yield Fault(_dotted([*error.instance_path, unexpected]), "unknown", {"allowed": allowed})
        case "Type":
            types = kind.types
            wanted = " | ".join([types] if isinstance(types, str) else [str(each) for each in types])
            yield Fault(path, "type", {"wanted": wanted, "got": type_of(error.instance)})
        case "Enum":
            yield Fault(path, "enum", {"options": _short(kind.options)})
        case "Minimum" | "ExclusiveMinimum" | "Maximum" | "ExclusiveMaximum":
            key = "at_least" if "Minimum" in name else "at_most"
            yield Fault(path, key, {"limit": _short(kind.limit)})
        case "MinLength" | "MaxLength" | "MinItems" | "MaxItems":
            yield Fault(path, _SIZES[name], {"limit": _short(kind.limit)})
        case _:
            yield Fault(path, "other", {"problem": str(error.message)[:300]})


_SIZES = {
    "MinLength": "shortest",
    "MaxLength": "longest",
    "MinItems": "fewest",
    "MaxItems": "most",
}


def _allowed(error: Any, root: Mapping[str, Any]) -> list[str]:
    node: Any = root
    for part in list(error.schema_path)[:-1]:
        if (isinstance(node, Mapping) and part in node) or (
            isinstance(node, list) and isinstance(part, int) and part < len(node)
        ):
            node = node[part]
        else:
            return []
    return list(node.get("properties", {})) if isinstance(node, Mapping) else []


def _dotted(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text[:200]


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 300 else f"{text[:300]}…"

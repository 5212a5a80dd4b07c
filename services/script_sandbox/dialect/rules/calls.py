"""Rules of calls: methods by their closed lists, and what stands behind a base."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from services.script_sandbox.dialect.refusal import Fault
from services.script_sandbox.dialect.rules.rule import fault_at, shown
from services.script_sandbox.dialect.scopes import Surroundings
from services.script_sandbox.dialect.vocabulary import (
    ANY_METHOD,
    BASES,
    JSON_FUNCTIONS,
    LLM_FUNCTIONS,
)

_OF_BASE = {"json": JSON_FUNCTIONS, "llm": LLM_FUNCTIONS}
# SCR-219, SCR-220: parameters that Python has and the language does not.
_ABSENT_PARAMETERS = {"print": ("file", "flush"), "zip": ("strict",)}


def attribute(node: ast.Attribute, around: Surroundings) -> Iterator[Fault]:
    """An attribute is a method being called, of the closed lists (SCR-189, SCR-224)."""
    if node.attr.startswith("__"):
        yield fault_at(node, "name.private", name=shown(node.attr))
    elif not around.is_called(node):
        yield fault_at(node, "expression.attribute", name=shown(node.attr))
    elif isinstance(node.value, ast.Name) and node.value.id in BASES:
        yield from _behind_base(node, node.value.id)
    elif node.attr not in ANY_METHOD:
        key = "call.format" if node.attr in ("format", "format_map") else "call.method"
        yield fault_at(node, key, name=shown(node.attr))


def call(node: ast.Call, around: Surroundings) -> Iterator[Fault]:
    """No parameter that the language leaves out, where the provided function is meant."""
    if not isinstance(node.func, ast.Name) or node.func.id in around.bound:
        return
    absent = _ABSENT_PARAMETERS.get(node.func.id, ())
    for given in node.keywords:
        if given.arg in absent:
            yield fault_at(given.value, "call.parameter", name=given.arg, function=node.func.id)


def _behind_base(node: ast.Attribute, base: str) -> Iterator[Fault]:
    known = _OF_BASE.get(base)
    if known is not None and node.attr not in known:
        yield fault_at(node, f"call.{base}", name=shown(node.attr))

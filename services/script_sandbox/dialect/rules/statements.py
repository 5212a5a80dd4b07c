"""Rules of statements (script.md 10.2)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from services.script_sandbox.dialect.refusal import Fault
from services.script_sandbox.dialect.rules.rule import fault_at
from services.script_sandbox.dialect.scopes import Surroundings
from services.script_sandbox.dialect.vocabulary import EXCEPTIONS


def imports(node: ast.Import, _around: Surroundings) -> Iterator[Fault]:
    """`import json` alone (SCR-181)."""
    if len(node.names) != 1 or node.names[0].name != "json" or node.names[0].asname is not None:
        yield fault_at(node, "statement.import")


def function(node: ast.FunctionDef, _around: Surroundings) -> Iterator[Fault]:
    """No decorators (SCR-183) and no parameters of type variables."""
    if node.decorator_list:
        yield fault_at(node.decorator_list[0], "statement.decorator")
    if getattr(node, "type_params", None):
        yield fault_at(node, "statement.type")


def parameters(node: ast.arguments, _around: Surroundings) -> Iterator[Fault]:
    """Plain parameters and keyword-only ones (SCR-184)."""
    for collected in (node.vararg, node.kwarg):
        if collected is not None:
            yield fault_at(collected, "statement.collecting_parameter")
    if node.posonlyargs:
        yield fault_at(node.posonlyargs[0], "statement.positional_only")


def assignment(node: ast.Assign, _around: Surroundings) -> Iterator[Fault]:
    """To names, subscripts and their unpacking; slices of lists as they stand (SCR-179)."""
    yield from (fault for target in node.targets for fault in _targets(target))


def loop(node: ast.For, _around: Surroundings) -> Iterator[Fault]:
    """The same targets as an assignment."""
    yield from _targets(node.target)


def comprehension(node: ast.comprehension, _around: Surroundings) -> Iterator[Fault]:
    """The same targets, and nothing asynchronous."""
    if node.is_async:
        yield fault_at(node.target, "statement.async")
    yield from _targets(node.target)


def augmented(node: ast.AugAssign, _around: Surroundings) -> Iterator[Fault]:
    """The operators of expressions; the target is a name or a subscript."""
    if isinstance(node.target, ast.Attribute):
        yield fault_at(node.target, "expression.attribute", name=node.target.attr[:60])


def annotated(node: ast.AnnAssign, _around: Surroundings) -> Iterator[Fault]:
    """Annotations stand on names and are never evaluated (SCR-180)."""
    if not isinstance(node.target, ast.Name):
        yield fault_at(node, "statement.annotation")


def raising(node: ast.Raise, _around: Surroundings) -> Iterator[Fault]:
    """A provided exception with at most one text, or a caught one again (SCR-231)."""
    raised = node.exc
    if isinstance(raised, ast.Call):
        named = isinstance(raised.func, ast.Name) and raised.func.id in EXCEPTIONS
        if not named or len(raised.args) > 1 or raised.keywords:
            yield fault_at(node, "statement.raise")
    elif raised is not None and not isinstance(raised, ast.Name):
        yield fault_at(node, "statement.raise")


def handler(node: ast.ExceptHandler, _around: Surroundings) -> Iterator[Fault]:
    """Provided exception names, or a tuple of them."""
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type] if node.type else []
    for kind in kinds:
        if not isinstance(kind, ast.Name) or kind.id not in EXCEPTIONS:
            yield fault_at(kind, "statement.except")


def _targets(target: ast.expr) -> Iterator[Fault]:
    match target:
        case ast.Name() | ast.Subscript():
            return
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _targets(part)
        case ast.Starred(value=inner):
            yield from _targets(inner)
        case ast.Attribute(attr=name):
            yield fault_at(target, "expression.attribute", name=name[:60])
        case _:
            yield fault_at(target, "statement.target")

"""Rules of names: what may be read, bound and called by what name (SCR-176 to SCR-178)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from services.script_sandbox.dialect.refusal import Fault
from services.script_sandbox.dialect.rules.rule import fault_at, shown
from services.script_sandbox.dialect.scopes import Surroundings, bound_by
from services.script_sandbox.dialect.vocabulary import BASES, INPUTS, INSTEAD_OF_NAME, PROVIDED


def name(node: ast.Name, around: Surroundings) -> Iterator[Fault]:
    """A name is bound in the script or provided; a base is only ever a base."""
    if isinstance(node.ctx, ast.Del):
        return
    yield from _private(node, node.id)
    if node.id in BASES:
        if not _is_base(node, around):
            yield fault_at(node, "name.base", name=node.id)
        return
    if isinstance(node.ctx, ast.Load) and not _known(node.id, around):
        kind = INSTEAD_OF_NAME.get(node.id)
        key = f"name.instead.{kind}" if kind else "name.unknown"
        yield fault_at(node, key, name=shown(node.id))


def binding(node: ast.AST, _around: Surroundings) -> Iterator[Fault]:
    """What a definition, a parameter or a handler binds is no base and not private."""
    for bound in bound_by(node):
        yield from _private(node, bound)
        if bound in BASES:
            yield fault_at(node, "name.base", name=bound)


def keyword(node: ast.keyword, _around: Surroundings) -> Iterator[Fault]:
    """Names of arguments are no private names either."""
    if node.arg is not None:
        yield from _private(node.value, node.arg)


def _private(node: ast.AST, identifier: str) -> Iterator[Fault]:
    if identifier.startswith("__"):
        yield fault_at(node, "name.private", name=shown(identifier))


def _known(identifier: str, around: Surroundings) -> bool:
    return identifier in around.bound or identifier in PROVIDED or (identifier == INPUTS and around.inputs)


def _is_base(node: ast.Name, around: Surroundings) -> bool:
    above = around.parent(node)
    return isinstance(node.ctx, ast.Load) and isinstance(above, ast.Attribute) and around.is_called(above)

"""Rules of expressions (script.md 10.3)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from services.script_sandbox.dialect.refusal import Fault
from services.script_sandbox.dialect.rules.rule import fault_at
from services.script_sandbox.dialect.scopes import Surroundings
from services.script_sandbox.limits import INTEGER_BITS


def constant(node: ast.Constant, _around: Surroundings) -> Iterator[Fault]:
    """Texts, numbers in range, and the three names (SCR-188, SCR-190, SCR-199)."""
    match node.value:
        case None | bool() | float():
            return
        case str(text):
            if any("\ud800" <= char <= "\udfff" for char in text):
                yield fault_at(node, "literal.surrogate")
        case int(number):
            if number.bit_length() > INTEGER_BITS:
                yield fault_at(node, "literal.integer", bits=INTEGER_BITS)
        case bytes():
            yield fault_at(node, "literal.bytes")
        case complex():
            yield fault_at(node, "literal.complex")
        case _:
            yield fault_at(node, "literal.ellipsis")


def operator(node: ast.BinOp | ast.AugAssign, _around: Surroundings) -> Iterator[Fault]:
    """No power and no matrix product (SCR-189, SCR-190)."""
    if isinstance(node.op, ast.Pow):
        yield fault_at(node, "expression.power")
    elif isinstance(node.op, ast.MatMult):
        yield fault_at(node, "expression.matrix")


def comparison(node: ast.Compare, _around: Surroundings) -> Iterator[Fault]:
    """`is` compares with None, True or False alone (SCR-191)."""
    sides = [node.left, *node.comparators]
    for sign, left, right in zip(node.ops, sides, sides[1:], strict=False):
        if isinstance(sign, ast.Is | ast.IsNot) and not (_is_single(left) or _is_single(right)):
            yield fault_at(node, "expression.is")


def formatted(node: ast.FormattedValue, _around: Surroundings) -> Iterator[Fault]:
    """`!r` and `!s` (SCR-194); the width is judged when it is known."""
    if node.conversion == ord("a"):
        yield fault_at(node, "expression.conversion")


def _is_single(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))

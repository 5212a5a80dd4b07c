"""Small trees, placed where the script's own construct stands."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeVar

N = TypeVar("N", bound=ast.AST)


def placed(node: N, at: ast.AST) -> N:
    """Give the new part of a tree the place of an old node, for the lines of errors."""
    new: list[ast.AST] = [node]
    while new:
        inner = new.pop()
        if "lineno" in inner._attributes:
            if hasattr(inner, "lineno"):
                continue
            ast.copy_location(inner, at)
        new.extend(ast.iter_child_nodes(inner))
    return node


def name(identifier: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(identifier, ast.Load())


def call(
    function: str, arguments: Sequence[ast.expr], at: ast.AST, keywords: Sequence[ast.keyword] = ()
) -> ast.Call:
    """A call of a function of the prelude."""
    return placed(ast.Call(name(function), list(arguments), list(keywords)), at)


def run(function: str, at: ast.AST, *arguments: ast.expr) -> ast.Expr:
    """A call as a statement."""
    return placed(ast.Expr(call(function, arguments, at)), at)

"""A program of the engine, and where its lines come from."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from services.script_sandbox.dialect.check import CheckedScript
from services.script_sandbox.lowering.nodes import call, placed, run
from services.script_sandbox.lowering.transformer import Lowering


@dataclass(frozen=True, slots=True)
class Program:
    """What the engine is given.

    Attributes:
        text: The program.
        lines: Line of the script for each line of the program.
        places: Line of the script for each line and column of an expression, both from 1.
    """

    text: str
    lines: Mapping[int, int]
    places: Mapping[tuple[int, int], int]

    def script_line(self, line: int, column: int) -> int:
        """The line of the script that a place of the program comes from; 0 when it is of none."""
        return self.places.get((line, column)) or self.lines.get(line, 0)


def lower(checked: CheckedScript) -> Program:
    """Write a checked script as a program of the engine. The checked tree is used up."""
    tree = checked.tree
    last = tree.body[-1] if tree.body else None
    Lowering(checked.around).visit(tree)
    if isinstance(last, ast.Expr) and tree.body[-1] is last:
        # SCR-240: the value of a last expression is shown as at the prompt.
        last.value = call("__show", [last.value], last)
    end = last if last is not None else placed(ast.Pass(lineno=1, col_offset=0), tree)
    tree.body.append(run("__end", end))
    text = ast.unparse(tree)
    return Program(text, *_origins(tree, ast.parse(text)))


def _origins(script: ast.Module, program: ast.Module) -> tuple[dict[int, int], dict[tuple[int, int], int]]:
    """Follow the written program beside the tree it was written from: they have the same shape."""
    lines: dict[int, int] = {}
    places: dict[tuple[int, int], int] = {}
    for old, new in zip(ast.walk(script), ast.walk(program), strict=False):
        if type(old) is not type(new):
            break
        if isinstance(old, ast.stmt) and isinstance(new, ast.stmt):
            lines.setdefault(new.lineno, old.lineno)
        elif isinstance(old, ast.expr) and isinstance(new, ast.expr):
            places.setdefault((new.lineno, new.col_offset + 1), old.lineno)
    return lines, places

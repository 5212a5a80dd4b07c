"""The rewriting itself: one method a construct that the engine would let pass."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from services.script_sandbox.dialect.scopes import Surroundings
from services.script_sandbox.dialect.vocabulary import FUNCTIONS, LLM_FUNCTIONS, TOOLS_FUNCTIONS
from services.script_sandbox.lowering.nodes import call, name, placed, run

_MEASURED = (ast.Add, ast.Sub, ast.Mult)
# Results that cannot be too large, whoever is meant by the name.
_SMALL = frozenset(("len", "bool", "isinstance", "print", "any", "all", "range", "store", "load"))
# SCR-217: a view would be an object that a script can do more with than it may.
_VIEWS = frozenset(("keys", "values", "items"))
_GROWING = frozenset(
    (
        *("join", "replace", "ljust", "rjust", "center", "zfill", "upper", "title", "capitalize"),
        *("casefold", "swapcase", "union", "symmetric_difference"),
    )
)
# Methods that grow what they are called on, or call back into the script.
_REDIRECTED = {"extend": "__extend", "update": "__update", "sort": "__sort"}
# The engine takes one argument where Python takes any number.
_OF_MANY = {"union": "__union", "intersection": "__intersection", "difference": "__difference"}
_KEPT_VALUES = {"store": "__store", "load": "__load"}


class Lowering(ast.NodeTransformer):
    """Rewrites a checked tree in place.

    Args:
        around: The script's names.
    """

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._tries = 0
        stored = {
            node.id for node in around.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        # Names that only ever mean a function of the script, whose results were measured in it.
        self._functions = {node.name for node in around.nodes if isinstance(node, ast.FunctionDef)} - stored

    # Statements

    def visit_Import(self, node: ast.Import) -> ast.stmt:
        """`import json` does nothing (SCR-181)."""
        return placed(ast.Pass(), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """An assignment, or nothing (SCR-180)."""
        if node.value is None:
            return placed(ast.Pass(), node)
        return placed(ast.Assign([node.target], self.visit(node.value)), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        """In place, then measured; the target's parts are evaluated once."""
        value: ast.expr = self.visit(node.value)
        target = node.target
        before: list[ast.stmt] = []
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
            before = [
                placed(ast.Assign([ast.Name("__b", ast.Store())], self.visit(target.value)), node),
                placed(ast.Assign([ast.Name("__i", ast.Store())], self.visit(target.slice)), node),
            ]
            target = placed(ast.Subscript(name("__b"), name("__i"), ast.Store()), node)
        elif isinstance(target, ast.Subscript):
            return [placed(ast.AugAssign(self.visit(target), node.op, value), node)]
        read = _read(target, node)
        match node.op:
            case ast.LShift():
                changed = call("__shl", [read, value], node)
            case ast.Mod():
                changed = call("__mod", [read, value], node)
            case ast.Add() | ast.Sub() | ast.Mult():
                augmented = placed(ast.AugAssign(target, node.op, value), node)
                return [*before, augmented, run("__v", node, read)]
            case _:
                return [*before, placed(ast.AugAssign(target, node.op, value), node)]
        return [*before, placed(ast.Assign([target], changed), node)]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """Entering counts a step and a level, leaving takes the level back (SCR-187)."""
        self.generic_visit(node)
        leave = run("__leave", node, ast.Constant(None))
        node.body = [run("__enter", node), *node.body, leave]
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        """Leaving, after the value is there."""
        self.generic_visit(node)
        value = node.value if node.value is not None else ast.Constant(None)
        return placed(ast.Return(call("__leave", [value], node)), node)

    def visit_Try(self, node: ast.Try) -> list[ast.stmt]:
        """A handler is as deep as its `try`, however deep the error arose."""
        self._tries += 1
        depth = f"__d{self._tries}"
        self.generic_visit(node)
        for handler in node.handlers:
            handler.body.insert(0, run("__caught", handler, name(depth)))
        return [placed(ast.Assign([ast.Name(depth, ast.Store())], name("__depth")), node), node]

    def visit_For(self, node: ast.For) -> ast.stmt:
        """Every round is a step."""
        self.generic_visit(node)
        node.body.insert(0, run("__step", node))
        return node

    def visit_While(self, node: ast.While) -> ast.stmt:
        """Every round is a step."""
        self.generic_visit(node)
        node.body.insert(0, run("__step", node))
        return node

    # Expressions

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Entering counts as for a function with a name."""
        self.generic_visit(node)
        body = call("__leave", [ast.IfExp(call("__enter", [], node), node.body, ast.Constant(None))], node)
        return placed(ast.Lambda(node.args, body), node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        """Built at once (SCR-192)."""
        self.generic_visit(node)
        return placed(ast.ListComp(node.elt, node.generators), node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        """Every item is a step; all are counted before the first."""
        self.generic_visit(node)
        node.iter = call("__each", [node.iter], node.iter)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Results that can grow are measured (SCR-198, SCR-211)."""
        self.generic_visit(node)
        match node.op:
            case ast.LShift():
                return call("__shl", [node.left, node.right], node)
            case ast.Mod():
                return call("__mod", [node.left, node.right], node)
            case ast.Add() | ast.Sub() | ast.Mult():
                return call("__v", [node], node)
            case _:
                return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """`~` reaches one further than the largest integer."""
        self.generic_visit(node)
        return call("__v", [node], node) if isinstance(node.op, ast.Invert) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        """An f-string as the joining of its parts (SCR-194)."""
        parts = [self._part(part) for part in node.values]
        joined = ast.Call(
            ast.Attribute(ast.Constant(""), "join", ast.Load()), [ast.List(parts, ast.Load())], []
        )
        return call("__v", [placed(joined, node)], node)

    def _part(self, part: ast.expr) -> ast.expr:
        if not isinstance(part, ast.FormattedValue):
            return part
        value: ast.expr = self.visit(part.value)
        if part.conversion == ord("r"):
            value = call("__repr", [value], part)
        elif part.conversion == ord("s"):
            value = call("__str", [value], part)
        if part.format_spec is not None:
            return call("__format", [value, self.visit(part.format_spec)], part)
        return value if part.conversion >= 0 else call("__str", [value], part)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """What is called by a base or a method of the closed lists, and what comes of the rest."""
        function = node.func
        if isinstance(function, ast.Attribute):
            return self._method(node, function)
        self.generic_visit(node)
        if not isinstance(function, ast.Name):
            return call("__v", [node], node)
        if function.id in _KEPT_VALUES and function.id not in self._around.bound:
            return _from_line(_KEPT_VALUES[function.id], node)
        if function.id in self._functions and function.id not in FUNCTIONS:
            return node
        if function.id in _SMALL and function.id not in self._around.bound:
            return node
        return call("__v", [node], node)

    def _method(self, node: ast.Call, function: ast.Attribute) -> ast.expr:
        base = function.value.id if isinstance(function.value, ast.Name) else ""
        match base:
            case "json":
                self._arguments(node)
                return call(f"__{function.attr}", node.args, node, node.keywords)
            case "llm" if function.attr in LLM_FUNCTIONS:
                self._arguments(node)
                return _from_line(f"__{function.attr}", node)
            case "tools":
                self._arguments(node)
                if function.attr in TOOLS_FUNCTIONS:
                    return _from_line(f"__{function.attr}", node)
                return _from_line("__tool", node, ast.Constant(function.attr))
        self.generic_visit(node)
        if function.attr in _REDIRECTED:
            return call(_REDIRECTED[function.attr], [function.value, *node.args], node, node.keywords)
        if function.attr in _OF_MANY and (len(node.args) != 1 or isinstance(node.args[0], ast.Starred)):
            return call(_OF_MANY[function.attr], [function.value, *node.args], node, node.keywords)
        if function.attr in _VIEWS:
            return call("__list", [node], node)
        return call("__v", [node], node) if function.attr in _GROWING else node

    def _arguments(self, node: ast.Call) -> None:
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)


def _from_line(function: str, node: ast.Call, *first: ast.expr) -> ast.Call:
    """A request of the prelude, told the line it is made on."""
    arguments: Sequence[ast.expr] = (ast.Constant(node.lineno), *first, *node.args)
    return call(function, arguments, node, node.keywords)


def _read(target: ast.expr, at: ast.AST) -> ast.expr:
    """The target of an assignment as something to read."""
    if isinstance(target, ast.Subscript):
        return placed(ast.Subscript(target.value, target.slice, ast.Load()), at)
    return placed(name(target.id if isinstance(target, ast.Name) else ""), at)

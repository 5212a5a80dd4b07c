"""The table: every construct of Python that is in the language, and those refused by name."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from services.script_sandbox.dialect.rules import calls, expressions, names, statements
from services.script_sandbox.dialect.rules.rule import Rule, never

_PLAIN: tuple[type[ast.AST], ...] = (
    *(ast.Module, ast.Expr, ast.If, ast.While, ast.Break, ast.Continue, ast.Pass, ast.Return),
    *(ast.Try, ast.Assert, ast.alias),
    *(ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Subscript, ast.Slice, ast.Starred),
    *(ast.Lambda, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.JoinedStr),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.Load, ast.Store, ast.Del),
    *(ast.And, ast.Or, ast.Not, ast.UAdd, ast.USub, ast.Invert),
    # Power and matrix product have no place of their own: what uses them is judged.
    *(ast.Pow, ast.MatMult),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
    *(ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot),
)

_RULED: dict[type[ast.AST], tuple[Rule, ...]] = {
    ast.Import: (statements.imports,),
    ast.FunctionDef: (statements.function, names.binding),
    ast.arguments: (statements.parameters,),
    ast.arg: (names.binding,),
    ast.Assign: (statements.assignment,),
    ast.AugAssign: (statements.augmented, expressions.operator),
    ast.AnnAssign: (statements.annotated,),
    ast.For: (statements.loop,),
    ast.comprehension: (statements.comprehension,),
    ast.Raise: (statements.raising,),
    ast.ExceptHandler: (statements.handler, names.binding),
    ast.Constant: (expressions.constant,),
    ast.BinOp: (expressions.operator,),
    ast.Compare: (expressions.comparison,),
    ast.FormattedValue: (expressions.formatted,),
    ast.Name: (names.name,),
    ast.keyword: (names.keyword,),
    ast.Attribute: (calls.attribute,),
    ast.Call: (calls.call,),
}

_REFUSED: dict[str, str] = {
    "ImportFrom": "statement.import",
    "ClassDef": "statement.class",
    "Delete": "statement.del",
    "With": "statement.with",
    "AsyncWith": "statement.async",
    "AsyncFor": "statement.async",
    "AsyncFunctionDef": "statement.async",
    "Await": "statement.async",
    "Global": "statement.global",
    "Nonlocal": "statement.global",
    "Match": "statement.match",
    "TryStar": "statement.except_group",
    "TypeAlias": "statement.type",
    "Yield": "statement.yield",
    "YieldFrom": "statement.yield",
    "NamedExpr": "expression.walrus",
    "TemplateStr": "expression.template",
}


def _table() -> Mapping[type[ast.AST], tuple[Rule, ...]]:
    table: dict[type[ast.AST], tuple[Rule, ...]] = dict.fromkeys(_PLAIN, ())
    table |= _RULED
    for name, key in _REFUSED.items():
        kind = getattr(ast, name, None)
        if kind is not None:
            table[kind] = (never(key),)
    return table


RULES = _table()

"""What a rule is, and the ways to say that something is not in the language."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from services.script_sandbox.dialect.refusal import Fault
from services.script_sandbox.dialect.scopes import Surroundings

# Given a node of the type it is entered for, and what is around it.
Rule = Callable[[Any, Surroundings], Iterator[Fault]]
_SHOWN = 60


def fault_at(node: ast.AST, key: str, **values: object) -> Fault:
    """A fault where a node begins."""
    return Fault(getattr(node, "lineno", 1), getattr(node, "col_offset", 0), key, values)


def never(key: str) -> Rule:
    """The rule of a construct that is never in the language."""

    def rule(node: ast.AST, _around: Surroundings) -> Iterator[Fault]:
        yield fault_at(node, key)

    return rule


def shown(name: str) -> str:
    """A name for a sentence, short and without what could read as another."""
    return ascii(name)[1:-1][:_SHOWN]

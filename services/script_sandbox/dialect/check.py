"""The check of a whole script before its first line runs (SCR-172)."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from services.script_sandbox.dialect.parsing import parse_script
from services.script_sandbox.dialect.refusal import Fault, Refused
from services.script_sandbox.dialect.rules import RULES
from services.script_sandbox.dialect.scopes import Surroundings, surroundings


@dataclass(frozen=True, slots=True)
class CheckedScript:
    """A script of which every construct is in the language.

    Attributes:
        tree: Its tree, as Python parsed it.
        around: Its names and places.
    """

    tree: ast.Module
    around: Surroundings


def check_script(text: str, *, max_chars: int, inputs: bool = False) -> CheckedScript:
    """Check a script.

    Args:
        text: As the model wrote it.
        max_chars: Its greatest length.
        inputs: Whether the name `inputs` is provided.

    Raises:
        Refused: With the first line that is not in the language.
    """
    tree = parse_script(text, max_chars)
    around = surroundings(tree, inputs=inputs)
    faults = [fault for node in around.nodes for fault in _faults(node, around)]
    if faults:
        raise Refused(min(faults, key=lambda fault: (fault.line, fault.column)))
    return CheckedScript(tree, around)


def _faults(node: ast.AST, around: Surroundings) -> list[Fault]:
    rules = RULES.get(type(node))
    if rules is None:
        # Part of a refused construct, or one that a newer Python has and the table does not know.
        placed = around.placed(node)
        return [Fault(getattr(placed, "lineno", 1), getattr(placed, "col_offset", 0) + 1, "construct")]
    return [fault for rule in rules for fault in rule(node, around)]

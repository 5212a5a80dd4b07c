"""From text to a tree of bounded depth; whatever the text, the answer is a tree or a refusal."""

from __future__ import annotations

import ast
import warnings

from services.script_sandbox.dialect.refusal import Fault, Refused

# Of the tree. What walks it later recurses, and Python allows some thousand frames.
MAX_NESTING = 90
_MAX_MESSAGE = 120


def parse_script(text: str, max_chars: int) -> ast.Module:
    """Parse a script.

    Args:
        text: As the model wrote it.
        max_chars: A longer one is refused unread (SCR-174).

    Raises:
        Refused: Too long, not Python, or nested too deeply (SCR-175).
    """
    if len(text) > max_chars:
        raise Refused(Fault(1, 0, "too_long", {"chars": len(text), "most": max_chars}))
    _refuse_unwritable(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, filename="script", mode="exec", type_comments=False)
    except SyntaxError as error:
        line = min(error.lineno or 1, text.count("\n") + 1)
        raise Refused(Fault(line, 0, "syntax", {"problem": _problem(error)})) from None
    except (RecursionError, MemoryError):
        raise Refused(Fault(_deepest_line(text), 0, "nesting", {"most": MAX_NESTING})) from None
    except ValueError:
        raise Refused(Fault(1, 0, "characters")) from None
    _simplify(tree)
    _refuse_uncompilable(tree)
    return tree


def _refuse_unwritable(text: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        if "\0" in line or any("\ud800" <= char <= "\udfff" for char in line):
            raise Refused(Fault(number, 0, "characters"))


def _simplify(tree: ast.Module) -> None:
    """Drop annotations and refuse what is nested too deeply for what walks the tree later."""
    level: list[ast.AST] = [tree]
    for _ in range(MAX_NESTING):
        for node in level:
            _drop_annotation(node)
        below = [child for node in level for child in ast.iter_child_nodes(node)]
        if not below:
            return
        level = below
    line = min((getattr(node, "lineno", 1) for node in level), default=1)
    raise Refused(Fault(line, 0, "nesting", {"most": MAX_NESTING}))


def _refuse_uncompilable(tree: ast.Module) -> None:
    """Let Python name what its grammar allows and its compiler does not, such as a stray `break`.

    The code is thrown away: nothing of a script is ever run by Python itself (SCR-254).
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(tree, filename="script", mode="exec", dont_inherit=True, optimize=0)
    except SyntaxError as error:
        raise Refused(Fault(error.lineno or 1, 0, "syntax", {"problem": _problem(error)})) from None
    except (RecursionError, MemoryError, ValueError, OverflowError):
        raise Refused(Fault(1, 0, "nesting", {"most": MAX_NESTING})) from None


def _drop_annotation(node: ast.AST) -> None:
    """Annotations are accepted and never evaluated (SCR-180)."""
    match node:
        case ast.arg():
            node.annotation = None
        case ast.FunctionDef():
            node.returns = None
        case ast.AnnAssign():
            node.annotation = ast.copy_location(ast.Constant(None), node.annotation)


def _problem(error: SyntaxError) -> str:
    return (error.msg or "invalid syntax")[:_MAX_MESSAGE]


def _deepest_line(text: str) -> int:
    """The longest line, which is where what the parser could not follow stands."""
    lines = text.split("\n")
    return max(range(len(lines)), key=lambda index: len(lines[index])) + 1

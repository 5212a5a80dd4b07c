"""Checks text by the parsers of Python and its libraries, as a process of its own.

A parser fed with hostile text may take all memory, all time or the whole process with it; here that
costs the findings and nothing else. Reads ``[[language, text], …]`` as JSON from standard input,
writes one list of findings for each.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Callable

from services.tools.workspace.checks.finding import Finding

_MEMORY_BYTES = 1024**3
_CPU_SECONDS = 5


def main() -> None:
    """Check what comes in."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tasks: list[tuple[str, str]] = json.load(sys.stdin)
    json.dump([[_fields(finding) for finding in checked(*task)] for task in tasks], sys.stdout)


def checked(language: str, text: str) -> list[Finding]:
    """The faults of one text."""
    try:
        return _CHECKS[language](text)
    except RecursionError:
        return [Finding.at(1, 1, "nesting", "nested too deeply to be checked")]


def _python(text: str) -> list[Finding]:
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
            compile(text, "file", "exec", dont_inherit=True)
    except SyntaxError as error:
        return [Finding.at(error.lineno, error.offset, "syntax", error.msg)]
    except ValueError as error:
        return [Finding.at(1, 1, "syntax", str(error))]
    return _python_names(tree)


def _python_names(tree: object) -> list[Finding]:
    from pyflakes import checker, messages

    # Faults for certain; what is merely unused or untidy is no fault of a change.
    errors = (
        messages.UndefinedName,
        messages.UndefinedLocal,
        messages.UndefinedExport,
        messages.DuplicateArgument,
        messages.ReturnOutsideFunction,
        messages.YieldOutsideFunction,
        messages.ContinueOutsideLoop,
        messages.BreakOutsideLoop,
        messages.StringDotFormatMissingArgument,
        messages.PercentFormatMissingArgument,
        messages.PercentFormatPositionalCountMismatch,
        messages.RaiseNotImplemented,
    )
    found = checker.Checker(tree, "file").messages
    return [
        Finding.at(fault.lineno, fault.col + 1, type(fault).__name__, str(fault.message) % fault.message_args)
        for fault in found
        if isinstance(fault, errors)
    ]


def _json(text: str) -> list[Finding]:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return [Finding.at(error.lineno, error.colno, "syntax", error.msg)]
    return []


def _json_lines(text: str) -> list[Finding]:
    findings = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            json.loads(line)
        except json.JSONDecodeError as error:
            findings.append(Finding.at(number, error.colno, "syntax", error.msg))
    return findings


def _yaml(text: str) -> list[Finding]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        # Composed and not constructed: tags of other programs are no faults.
        for _ in YAML(typ="safe", pure=True).compose_all(text):
            pass
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return [Finding.at(line, column, "syntax", str(error.problem or error.context))]
    except YAMLError as error:
        return [Finding.at(1, 1, "syntax", str(error))]
    return []


def _toml(text: str) -> list[Finding]:
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        at = re.search(r" \(at line (\d+), column (\d+)\)$", message)
        if at:
            return [Finding.at(int(at[1]), int(at[2]), "syntax", message[: at.start()])]
        return [Finding.at(text.count("\n") + 1, 1, "syntax", message)]
    return []


def _xml(text: str) -> list[Finding]:
    from xml.parsers import expat

    try:
        expat.ParserCreate().Parse(text, True)
    except expat.ExpatError as error:
        return [Finding.at(error.lineno, error.offset + 1, "syntax", expat.ErrorString(error.code))]
    return []


def _html(text: str) -> list[Finding]:
    from services.tools.workspace.checks.html_balance import unbalanced_tags

    return unbalanced_tags(text)


def _fields(finding: Finding) -> tuple[int, int, str, str]:
    return finding.line, finding.column, finding.code, finding.message


_CHECKS: dict[str, Callable[[str], list[Finding]]] = {
    "python": _python,
    "json": _json,
    "json_lines": _json_lines,
    "yaml": _yaml,
    "toml": _toml,
    "xml": _xml,
    "html": _html,
}


if __name__ == "__main__":
    main()

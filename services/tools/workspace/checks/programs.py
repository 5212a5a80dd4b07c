"""Checking by programs that are installed: a shell and node only read what they are given here."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.tools.workspace.checks.finding import Finding
from services.tools.workspace.checks.languages import Language

_BASH_LINE = re.compile(r"^\S+: line (\d+): (.*)$", re.M)
_NODE_PLACE = re.compile(r"^\[stdin\]:(\d+)$", re.M)
_NODE_CARET = re.compile(r"^( *)\^+ *$", re.M)
_NODE_MESSAGE = re.compile(r"^(\w*Error): (.*)$", re.M)


@dataclass(frozen=True, slots=True)
class Program:
    """A checker that reads a text from its standard input and complains on its error output."""

    command: Sequence[str]
    findings: Callable[[str], list[Finding]]


def installed_programs() -> dict[Language, Program]:
    """The checkers there are on this machine, by language."""
    programs: dict[Language, Program] = {}
    if bash := shutil.which("bash"):
        programs["shell"] = Program((bash, "--norc", "--noprofile", "-n"), _of_bash)
    if node := shutil.which("node"):
        programs["javascript"] = Program((node, "--check", "-"), _of_node)
        programs["module"] = Program((node, "--input-type=module", "--check", "-"), _of_node)
    return programs


def _of_bash(complaints: str) -> list[Finding]:
    found = [(int(line), message) for line, message in _BASH_LINE.findall(complaints)]
    # The line that quotes the source repeats the fault before it.
    return [
        Finding.at(line, 1, "syntax", message)
        for number, (line, message) in enumerate(found)
        if not (number and message.startswith("`"))
    ]


def _of_node(complaints: str) -> list[Finding]:
    message = _NODE_MESSAGE.search(complaints)
    if message is None:
        return []
    place, caret = _NODE_PLACE.search(complaints), _NODE_CARET.search(complaints)
    line = int(place[1]) if place else 1
    column = len(caret[1]) + 1 if caret else 1
    return [Finding.at(line, column, message[1], message[2])]

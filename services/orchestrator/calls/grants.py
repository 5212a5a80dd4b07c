"""Standing permissions of a conversation: ``tool`` or ``tool:scope`` (FLD-021).

A scope narrows "always" to what the person saw: a program with its first subcommand, or a folder.
Whatever cannot be read with certainty is not covered, and the call asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from posixpath import dirname, normpath
from typing import Any

from services.orchestrator.agents.runners import RUNNERS

_SPLIT = re.compile(r"&&|\|\||[;&|\n]")
# Lets a line run what its words do not show (FLD-019).
_HIDDEN = re.compile(r"\$\(|`|<\(|>|\b(?:eval|exec|xargs|env|source)\b|\\\n")
_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9-]*")
_LONGEST_SCOPE = 200
# Offered whole only behind a narrower scope that the person can take instead.
_NEVER_WHOLE_UNASKED = frozenset({"shell_run"})


def covering(tool: str, arguments: Mapping[str, Any], grants: Sequence[str]) -> str | None:
    """The grant that lets this call run unasked, or None."""
    for grant in grants:
        name, colon, scope = grant.partition(":")
        if name != tool:
            continue
        if not colon:
            return grant
        covers = _COVERS.get(tool)
        if scope and covers is not None and covers(arguments, scope):
            return grant
    return None


def offered(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    """What "always" may be given for after this call, narrowest first, the whole tool last.

    Nothing for a command line that cannot be read with certainty, or that runs several programs: one
    click on it would let every command through.
    """
    scope = _SCOPES[tool](arguments) if tool in _SCOPES else None
    if scope and len(scope) <= _LONGEST_SCOPE:
        return [f"{tool}:{scope}", tool]
    return [] if tool in _NEVER_WHOLE_UNASKED else [tool]


def _simple_commands(line: object) -> list[str] | None:
    """The commands of a line, or None when more may run than its words show."""
    if not isinstance(line, str) or _HIDDEN.search(line):
        return None
    commands = [part.strip() for part in _SPLIT.split(line)]
    return [part for part in commands if part] or None


def _command_covers(arguments: Mapping[str, Any], scope: str) -> bool:
    commands = _simple_commands(arguments.get("command"))
    wanted = scope.split()
    return commands is not None and all(command.split()[: len(wanted)] == wanted for command in commands)


def _command_scope(arguments: Mapping[str, Any]) -> str | None:
    commands = _simple_commands(arguments.get("command"))
    if commands is None or len(commands) != 1:
        return None
    words = commands[0].split()
    if not _PROGRAM.fullmatch(words[0]) or words[0] in RUNNERS:
        return None
    if len(words) > 1 and _SUBCOMMAND.fullmatch(words[1]):
        return f"{words[0]} {words[1]}"
    return words[0]


def _paths(arguments: Mapping[str, Any]) -> list[str] | None:
    files = arguments.get("files")
    found = [arguments.get("path")] if "path" in arguments else []
    if isinstance(files, list):
        found += [each.get("path") if isinstance(each, Mapping) else None for each in files]
    paths = []
    for path in found:
        if not isinstance(path, str) or not path or "\0" in path:
            return None
        normal = normpath(path)
        if normal.startswith(("/", "..")):
            return None
        paths.append(normal)
    return paths or None


def _folder_covers(arguments: Mapping[str, Any], scope: str) -> bool:
    paths = _paths(arguments)
    folder = scope.rstrip("/") + "/"
    return paths is not None and folder != "/" and all(path.startswith(folder) for path in paths)


def _folder_scope(arguments: Mapping[str, Any]) -> str | None:
    paths = _paths(arguments)
    folders = {dirname(path) for path in paths or ()}
    if len(folders) != 1:
        return None
    folder = folders.pop()
    return f"{folder}/" if folder else None


_COVERS: Mapping[str, Callable[[Mapping[str, Any], str], bool]] = {
    "shell_run": _command_covers,
    "workspace_write": _folder_covers,
    "workspace_edit": _folder_covers,
}
_SCOPES: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "shell_run": _command_scope,
    "workspace_write": _folder_scope,
    "workspace_edit": _folder_scope,
}

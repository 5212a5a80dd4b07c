"""Which commands ask, which are refused and which are routine (tools.md 9.2, FLD-019, FLD-027).

The lists are a soft guard against the obvious mistake, not a sandbox (TLS-274). Ask and deny entries
are matched generously, allow entries strictly, so that every doubt ends in a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from services.common.shell_defaults import usable_allow_patterns, usable_guard_patterns

PatternList = Literal["deny", "ask", "allow"]

_LINE_CONTINUATION = re.compile(r"\\\n")
_FIELD_SEPARATOR = re.compile(r"\$\{IFS[^}]*\}|\$IFS(?![A-Za-z0-9_])(?:\$\d)?")
_QUOTING = re.compile(r"\$(?=['\"])|[\\'\"]")
_BLANKS = re.compile(r"[ \t]+")

_COMMAND_BORDER = re.compile(r"&&|\|\||[;&|\n\r]")
# `2>&1` and `>&-` go to no path.
_DESCRIPTOR_COPY = re.compile(r"(?:(?<=\s)\d)?>&(?:\d|-)(?=[\s;&|]|$)")
_RUNS_ITS_ARGUMENTS = re.compile(r"(?i)\b(?:eval|exec|execdir|xargs|env)\b")
_WHITESPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """What the lists say of one command.

    Attributes:
        verdict: The first list that speaks, in the order deny, ask, allow (TLS-268); None leaves the
            decision to the conversation.
        pattern: The entry that matched; for an allowed line of several commands, the entries used.
    """

    verdict: PatternList | None
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class PatternLists:
    """The three lists of an agent, without the entries that are not used.

    Attributes:
        dropped: Entries of the allow list that are not in force.
    """

    ask: tuple[str, ...]
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    dropped: tuple[str, ...] = ()

    @classmethod
    def of(cls, *, ask: Iterable[str], allow: Iterable[str], deny: Iterable[str]) -> PatternLists:
        """Build the lists from what settings say."""
        kept, dropped = usable_allow_patterns(allow)
        return cls(usable_guard_patterns(ask), kept, usable_guard_patterns(deny), dropped)

    def match(self, command: str) -> PatternMatch:
        """Say which list decides on `command`, and by which entry (TLS-268, TLS-275)."""
        if (pattern := find_guard_pattern(command, self.deny)) is not None:
            return PatternMatch("deny", pattern)
        if (pattern := find_guard_pattern(command, self.ask)) is not None:
            return PatternMatch("ask", pattern)
        if used := find_allow_patterns(command, self.allow):
            return PatternMatch("allow", "; ".join(used))
        return PatternMatch(None)


def normalised(command: str) -> str:
    """The command as a careless disguise would not change it (FLD-027).

    Backslashes and quotes are removed, `$IFS` is a blank, and runs of blanks are one blank.
    """
    text = _LINE_CONTINUATION.sub("", command)
    text = _FIELD_SEPARATOR.sub(" ", text)
    text = _QUOTING.sub("", text)
    return _BLANKS.sub(" ", text)


def find_guard_pattern(command: str, patterns: Sequence[str]) -> str | None:
    """The first entry that `command` holds, as written or normalised, in any letter case."""
    forms = (command.casefold(), normalised(command).casefold())
    for pattern in patterns:
        needle = pattern.casefold()
        if any(needle in form for form in forms):
            return pattern
    return None


def find_allow_patterns(command: str, patterns: Sequence[str]) -> tuple[str, ...]:
    """The entries that make every simple command of the line routine; empty when one is not (FLD-019).

    The line is split without regard to quotes: that can only make more and smaller pieces, each of
    which has to begin with an allowed entry, so a quoted separator asks where it need not.
    """
    if not patterns or not _is_plain(command):
        return ()
    used: dict[str, None] = {}
    pieces = [piece.strip(" \t") for piece in _COMMAND_BORDER.split(_DESCRIPTOR_COPY.sub(" ", command))]
    for piece in filter(None, pieces):
        pattern = next((entry for entry in patterns if _begins_with(piece, entry)), None)
        if pattern is None:
            return ()
        used[pattern] = None
    return tuple(used)


def _begins_with(piece: str, pattern: str) -> bool:
    head = pattern.lstrip().casefold()
    folded = piece.casefold()
    # A trailing blank of the entry is significant, and the blanks around a piece are gone.
    if head.endswith((" ", "\t")):
        return folded.startswith(head)
    return folded == head or folded.startswith((f"{head} ", f"{head}\t"))


def _is_plain(command: str) -> bool:
    """Whether the line runs only what stands at the beginning of its simple commands."""
    for form in (command, normalised(command)):
        if any(sign in form for sign in ("$(", "`", "<(", ">(", "\0")):
            return False
        # A redirection names a path, whatever stands around it.
        if ">" in _DESCRIPTOR_COPY.sub(" ", form):
            return False
        if _RUNS_ITS_ARGUMENTS.search(form):
            return False
        # `git () (…)` gives an allowed name a new meaning.
        if "()" in _WHITESPACE.sub("", form):
            return False
    return True

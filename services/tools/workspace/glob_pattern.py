"""Glob patterns, matched in a time that no pattern can blow up.

``*`` and ``?`` stay within one name, ``[...]`` is a set, ``{a,b}`` is a choice, ``**`` as a whole
name stands for any number of folders. Regular expressions would do the same until a pattern like
``*a*a*a*a*a*b`` meets a long name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

PATTERN_CHARS = 1000
# Of all choices in one pattern, multiplied out.
ALTERNATIVES = 64

A = TypeVar("A")
B = TypeVar("B")


class BadPattern(ValueError):
    """The pattern cannot be understood; the text says why, in a word for the log."""


@dataclass(frozen=True, slots=True)
class _Set:
    negated: bool
    ranges: tuple[tuple[str, str], ...]

    def takes(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges) != self.negated


_ANY_RUN = "*"
_ANY_ONE = "?"
# A literal character, a set, or one of the two above (as an instance of `_Wild`).


@dataclass(frozen=True, slots=True)
class _Wild:
    sign: str


_Piece = str | _Set | _Wild
_FOLDERS = _Wild("**")
_Name = tuple[_Piece, ...]
_Step = _Name | _Wild


class GlobPattern:
    """A pattern for paths relative to the workspace.

    Args:
        text: The pattern; a leading ``./`` or ``/`` means the workspace.
        anywhere: A pattern without a slash matches a file's name at any depth.

    Raises:
        BadPattern: Too long, too many choices, an unclosed ``[`` or ``{``, or a ``..``.
    """

    def __init__(self, text: str, *, anywhere: bool = False) -> None:
        if not text.strip() or len(text) > PATTERN_CHARS:
            raise BadPattern("length")
        self.text = text
        # The longest common folder in which every match lies, free of wildcards.
        self.fixed_prefix = ""
        plain = text.removeprefix("./").lstrip("/")
        alternatives = [
            f"**/{alternative}" if anywhere and "/" not in alternative else alternative
            for alternative in _alternatives(plain)
        ]
        self._paths = [tuple(map(_step, _names(alternative))) for alternative in alternatives]
        self.fixed_prefix = _common_folder([_fixed(path) for path in self._paths])

    def matches(self, path: str) -> bool:
        """Whether `path` (relative, ``/`` between names) matches."""
        names = path.split("/")
        return any(_match(steps, names, _FOLDERS, _name_matches) for steps in self._paths)

    def may_lie_below(self, folder: str) -> bool:
        """Whether a path below `folder` could match; False spares looking into it."""
        names = folder.split("/") if folder else []
        return any(_prefix_matches(steps, names) for steps in self._paths)


def _names(pattern: str) -> list[str]:
    names = [name for name in pattern.split("/") if name not in {"", "."}]
    if ".." in names or not names:
        raise BadPattern("path")
    return names


def _step(name: str) -> _Step:
    return _FOLDERS if name == "**" else tuple(_pieces(name))


def _pieces(name: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    at = 0
    while at < len(name):
        char = name[at]
        at += 1
        if char == "*":
            if not (pieces and pieces[-1] == _Wild(_ANY_RUN)):
                pieces.append(_Wild(_ANY_RUN))
        elif char == "?":
            pieces.append(_Wild(_ANY_ONE))
        elif char == "[":
            piece, at = _set(name, at)
            pieces.append(piece)
        elif char == "\\" and at < len(name):
            pieces.append(name[at])
            at += 1
        else:
            pieces.append(char)
    return pieces


def _set(name: str, at: int) -> tuple[_Set, int]:
    negated = name[at : at + 1] in {"!", "^"}
    at += negated
    # A ] that comes first is a member.
    end = name.find("]", at + 1)
    if end < 0:
        raise BadPattern("set")
    members, ranges = name[at:end], []
    here = 0
    while here < len(members):
        if members[here + 1 : here + 2] == "-" and here + 2 < len(members):
            ranges.append((members[here], members[here + 2]))
            here += 3
        else:
            ranges.append((members[here], members[here]))
            here += 1
    return _Set(negated, tuple(ranges)), end + 1


def _alternatives(pattern: str) -> list[str]:
    """The pattern with every ``{a,b}`` multiplied out, the first of a pattern first."""
    open_at = _find_plain(pattern, "{", 0)
    if open_at < 0:
        return [pattern]
    depth, start, parts = 0, open_at + 1, []
    at = open_at
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif char == "{":
            depth += 1
        elif char == "," and depth == 1:
            parts.append(pattern[start:at])
            start = at + 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                parts.append(pattern[start:at])
                break
        at += 1
    else:
        raise BadPattern("braces")
    rests = _alternatives(pattern[at + 1 :])
    inner = [alternative for part in parts for alternative in _alternatives(part)]
    if len(inner) * len(rests) > ALTERNATIVES:
        raise BadPattern("alternatives")
    return [pattern[:open_at] + part + rest for part in inner for rest in rests]


def _find_plain(text: str, char: str, at: int) -> int:
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == char:
            return at
        at += 1
    return -1


def _match(pattern: Sequence[A], text: Sequence[B], run: A, takes: Callable[[A, B], bool]) -> bool:
    """Match with `run` standing for any number of elements; at worst pattern times text steps.

    Going back to the last run is enough: what an earlier run could take, the last one can too.
    """
    here = there = 0
    back_here, back_there = -1, 0
    while there < len(text):
        if here < len(pattern) and pattern[here] == run:
            back_here, back_there = here, there
            here += 1
        elif here < len(pattern) and takes(pattern[here], text[there]):
            here += 1
            there += 1
        elif back_here >= 0:
            back_there += 1
            here, there = back_here + 1, back_there
        else:
            return False
    return all(step == run for step in pattern[here:])


def _name_matches(step: _Step, name: str) -> bool:
    assert not isinstance(step, _Wild)
    return _match(step, name, _Wild(_ANY_RUN), _char_matches)


def _char_matches(piece: _Piece, char: str) -> bool:
    match piece:
        case _Wild():
            return piece.sign == _ANY_ONE
        case _Set():
            return piece.takes(char)
        case _:
            return piece == char


def _prefix_matches(steps: Sequence[_Step], names: Sequence[str]) -> bool:
    """Whether `names` could be the folders of a path that matches `steps`."""
    for at, name in enumerate(names):
        if at >= len(steps):
            return False
        step = steps[at]
        if isinstance(step, _Wild):
            return True
        if not _name_matches(step, name):
            return False
    return len(steps) > len(names)


def _fixed(steps: Sequence[_Step]) -> list[str]:
    """The leading names of a pattern that hold no wildcard, the last name left out."""
    fixed = []
    for step in steps[:-1]:
        if isinstance(step, _Wild) or not all(isinstance(piece, str) for piece in step):
            break
        fixed.append("".join(piece for piece in step if isinstance(piece, str)))
    return fixed


def _common_folder(folders: Sequence[Sequence[str]]) -> str:
    common = []
    for names in zip(*folders, strict=False):
        if len(set(names)) > 1:
            break
        common.append(names[0])
    return "/".join(common)

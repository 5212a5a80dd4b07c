"""Replacing exact passages of a text, whatever line ends the file has."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal

from services.tools.workspace.text.marks import FileText, with_line_ends

EditFaultKind = Literal["empty", "same", "absent", "several"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One passage and what takes its place."""

    old: str
    new: str
    replace_all: bool = False


class EditFault(Exception):
    """An edit that does not apply; the text is as it was.

    Args:
        kind: ``empty`` or ``same`` arguments, an ``absent`` passage, or one that is there
            ``several`` times.
        count: How often it is there.
    """

    def __init__(self, kind: EditFaultKind, count: int = 0) -> None:
        super().__init__(kind)
        self.kind: EditFaultKind = kind
        self.count = count


@dataclass(frozen=True, slots=True)
class Edited:
    """The text after an edit."""

    text: str
    replaced: int
    # Line breaks of the arguments were taken as CRLF, the file's own (PIP-071).
    as_crlf: bool


def check(edit: Edit) -> None:
    """Check what can be checked without the file (TLS-230).

    Raises:
        EditFault: ``empty`` or ``same``.
    """
    if not edit.old:
        raise EditFault("empty")
    if edit.old == edit.new:
        raise EditFault("same")


def apply(file: FileText, edit: Edit) -> Edited:
    """Replace the passage; everything outside it stays byte for byte (TLS-231).

    Raises:
        EditFault: The edit does not apply.
    """
    check(edit)
    text = file.text
    has_crlf = "\r\n" in text
    old = with_line_ends(edit.old, crlf=False) if has_crlf else edit.old
    new = with_line_ends(edit.new, crlf=True) if file.marks.crlf else edit.new
    places = _places(with_line_ends(text, crlf=False) if has_crlf else text, old)
    if not places:
        raise EditFault("absent")
    if len(places) > 1 and not edit.replace_all:
        raise EditFault("several", len(places))
    if has_crlf:
        places = _in_original(text, places)
    pieces, at = [], 0
    for start, end in places:
        pieces += [text[at:start], new]
        at = end
    pieces.append(text[at:])
    adapted = has_crlf and (_differs(edit.old) or (file.marks.crlf and _differs(edit.new)))
    return Edited("".join(pieces), len(places), adapted)


def _differs(argument: str) -> bool:
    """Whether the argument has a line break that is not CRLF."""
    return argument.count("\n") > argument.count("\r\n")


def _places(text: str, passage: str) -> list[tuple[int, int]]:
    places, at = [], text.find(passage)
    while at >= 0:
        places.append((at, at + len(passage)))
        at = text.find(passage, at + len(passage))
    return places


def _in_original(text: str, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Places in the text with LF alone, as places in the text with its CRs."""
    # Where in the text without CRs each of their line feeds stands.
    breaks, at, seen = [], text.find("\r\n"), 0
    while at >= 0:
        breaks.append(at - seen)
        seen += 1
        at = text.find("\r\n", at + 2)
    return [(start + bisect_left(breaks, start), end + bisect_left(breaks, end)) for start, end in places]

"""Which of a script's labels a model's answer means (SCR-144 to 149)."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# Marks that are no punctuation to Unicode and stand around words all the same.
_MARKS = frozenset("`´^~|")


def chosen(answer: str, labels: Sequence[str]) -> str | None:
    """The one of `labels` that `answer` means, as it was written; None when that is not clear.

    The whole answer is a label; or it is one without the marks around it; or exactly one label
    stands in it as words of its own. Whatever comes back is an element of `labels`.
    """
    said = folded(answer)
    by_text = {folded(label): label for label in labels}
    if said in by_text:
        return by_text[said]
    bare = [label for text, label in by_text.items() if _bare(text) and _bare(text) == _bare(said)]
    if len(bare) == 1:
        return bare[0]
    found = [label for text, label in by_text.items() if text and _stands_in(text, said)]
    return found[0] if len(found) == 1 else None


def folded(text: str) -> str:
    """`text` without the differences that do not count: case, blanks, the way diacritics are typed."""
    composed = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(composed.split())


def _bare(text: str) -> str:
    start, end = 0, len(text)
    while start < end and _is_mark(text[start]):
        start += 1
    while end > start and _is_mark(text[end - 1]):
        end -= 1
    return text[start:end]


def _is_mark(character: str) -> bool:
    return character.isspace() or character in _MARKS or unicodedata.category(character).startswith("P")


def _stands_in(label: str, said: str) -> bool:
    """Whether `label` is somewhere in `said` with no letter or digit right before or after it."""
    place = said.find(label)
    while place >= 0:
        after = place + len(label)
        if not (place and said[place - 1].isalnum()) and not (after < len(said) and said[after].isalnum()):
            return True
        place = said.find(label, place + 1)
    return False

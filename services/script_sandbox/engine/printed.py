"""What a script prints, kept at its two ends (script.md, section 11)."""

from __future__ import annotations

from typing import Any, Self

from services.common.wording import Locale, load


class Printed:
    """Collects printed text, never more of it than twice the limit.

    Args:
        most: Characters that may be kept, the marker included.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._head = ""
        self._tail = ""
        self.chars = 0

    def add(self, text: str) -> None:
        """Take what was printed last."""
        text = _writable(text)
        self.chars += len(text)
        room = self._most - len(self._head)
        if room > 0:
            self._head += text[:room]
        rest = text[room:] if room > 0 else text
        if rest:
            self._tail = (self._tail + rest)[-self._most :]

    def text(self, locale: Locale) -> str:
        """All of it, or head and tail round a marker that says what is missing (SCR-241, SCR-242)."""
        if self.chars <= self._most:
            return self._head
        kept = self._most
        marker = ""
        # The marker names what it drops, and dropping makes room for the marker.
        for _ in range(4):
            marker = load("script_sandbox").text(
                locale, "printed.dropped", chars=self.chars, dropped=self.chars - kept
            )
            if kept == max(self._most - len(marker), 0):
                break
            kept = max(self._most - len(marker), 0)
        last = kept // 2
        everything = self._head + self._tail
        return self._head[: kept - last] + marker + (everything[-last:] if last else "")

    def state(self) -> dict[str, Any]:
        """What `restored` needs."""
        return {"head": self._head, "tail": self._tail, "chars": self.chars}

    @classmethod
    def restored(cls, most: int, state: dict[str, Any]) -> Self:
        """Go on where a checkpoint was taken.

        Raises:
            ValueError: The state was not written by `state`.
        """
        head, tail, chars = state.get("head"), state.get("tail"), state.get("chars")
        if not isinstance(head, str) or not isinstance(tail, str) or not isinstance(chars, int):
            raise ValueError("printed")
        printed = cls(most)
        printed._head, printed._tail = head[:most], tail[-most:]
        printed.chars = max(chars, len(printed._head))
        return printed


def _writable(text: str) -> str:
    """SCR-246: what a database cannot hold is shown as the replacement character."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text

"""What a provider wants back with its own message, unread (FLD-001).

Reasoning text, reasoning details, signatures and signed thinking blocks travel from a reply to the
later requests that hold the same message, to the same provider and model family, and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from services.common.storable import storable_json
from services.orchestrator.models.text_pieces import TextPieces

MAX_BYTES = 256 * 1024
# Fields of a delta that are text in pieces, and fields that are lists in pieces.
_TEXT_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
_LIST_FIELDS = ("reasoning_details", "thinking_blocks")
_GROWING = ("text", "summary", "thinking")


class OpaqueFields:
    """Collects the fields while a reply is streamed."""

    def __init__(self) -> None:
        self._texts: dict[str, TextPieces] = {}
        self._lists: dict[str, list[dict[str, Any]]] = {}
        self._extra: Any = None

    def feed(self, delta: Mapping[str, Any]) -> bool:
        """Take the fields of one delta; whether it held any thought."""
        thought = False
        for name in _TEXT_FIELDS:
            if isinstance(piece := delta.get(name), str) and piece:
                self._texts.setdefault(name, TextPieces()).feed(piece)
                thought = True
        for name in _LIST_FIELDS:
            for entry in _entries(delta.get(name)):
                _append(self._lists.setdefault(name, []), entry)
                thought = True
        if delta.get("extra_content") is not None:
            self._extra = delta["extra_content"]
        return thought

    def text(self, origin: str, call_extras: Sequence[Any]) -> str | None:
        """JSON text to keep with the message; None when there is nothing or too much.

        Args:
            origin: Who may have it back, see `origin_of`.
            call_extras: Per call what belongs to it, or None.
        """
        fields: dict[str, Any] = {}
        for name, pieces in self._texts.items():
            pieces.flush()
            fields[name] = pieces.so_far
        fields.update(self._lists)
        if "reasoning_details" in fields:
            # The same thoughts as plain text; sent twice they would count twice.
            fields.pop("reasoning", None)
        if self._extra is not None:
            fields["extra_content"] = self._extra
        kept: dict[str, Any] = {"origin": origin, "fields": fields}
        if any(extra is not None for extra in call_extras):
            kept["calls"] = list(call_extras)
        elif not fields:
            return None
        text, _ = storable_json(json.dumps(kept, ensure_ascii=False, separators=(",", ":")))
        return text if len(text.encode()) <= MAX_BYTES else None


def origin_of(provider: str, base_url: str, model: str) -> str:
    """Name who wrote a reply: the provider, where it is, and the family of the model.

    The family is the maker's part of ``maker/model``, else the name up to its first digit or
    separator: a signature of one version is understood by the next, of another maker by none.
    """
    maker, slash, _ = model.lower().partition("/")
    family = maker if slash else re.split(r"[-_:.@\d]", model.lower(), maxsplit=1)[0] or model.lower()
    return f"{provider}|{_place(base_url)}|{family}"


def returned_fields(opaque: str, origin: str) -> tuple[Mapping[str, Any], Sequence[Any]]:
    """The message fields and per-call extras to send back, both empty for any other origin."""
    try:
        kept = orjson.loads(opaque)
    except orjson.JSONDecodeError:
        return {}, ()
    if not isinstance(kept, dict) or kept.get("origin") != origin:
        return {}, ()
    return kept.get("fields") or {}, kept.get("calls") or ()


def _entries(value: object) -> Sequence[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else ()


def _append(entries: list[dict[str, Any]], entry: Mapping[str, Any]) -> None:
    """Join a piece to the entry it continues: same type and index, nothing signed in between."""
    last = entries[-1] if entries else None
    growing = next((name for name in _GROWING if isinstance(entry.get(name), str)), None)
    only_signature = growing is None and bool(entry.get("signature"))
    if (
        last is None
        or not (growing or only_signature)
        or last.get("type") != entry.get("type")
        or last.get("index") != entry.get("index")
        or last.get("signature")
    ):
        entries.append(dict(entry))
        return
    for name, value in entry.items():
        if name == growing:
            last[name] = (last.get(name) or "") + value
        elif value is not None:
            last[name] = value


def _place(base_url: str) -> str:
    """Host and path of an address, without any name or password in it."""
    return re.sub(r"^[a-z]+://(?:[^/@]*@)?", "", base_url.lower()).rstrip("/")

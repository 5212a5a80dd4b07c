"""Keeping known secret values out of everything a call shows (PIP-134)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "[secret]"
# Shorter values would blank out ordinary words.
_SHORTEST = 6


class SecretMask:
    """Replaces the given values wherever they stand.

    Args:
        values: Secret values this process holds, such as keys and tokens.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        known = {value for value in values if len(value) >= _SHORTEST}
        # Inside JSON text a value may stand escaped, with or without what is not ASCII.
        escaped = {json.dumps(value, ensure_ascii=kept)[1:-1] for value in known for kept in (True, False)}
        found = sorted(known | escaped, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, found))) if found else None

    def text(self, text: str) -> str:
        """`text` with every known value replaced."""
        return self._pattern.sub(MASK, text) if self._pattern else text

    def details(self, value: Any) -> Any:
        """A copy of JSON-like `value` with every string masked, keys included."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.details(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.details(inner) for inner in value]
        return value

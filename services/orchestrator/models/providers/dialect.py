"""How chat-completions servers differ in what they are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# Makers on OpenRouter whose models cache a prompt only where it is marked.
_CACHE_ON_REQUEST = ("anthropic/",)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one provider knows beyond the common part; the rest is left out for it."""

    name: str
    base_url: str
    key: str = field(default="", repr=False)
    # The environment variable that is missing, when it cannot be asked without it.
    missing_key: str = ""
    # `reasoning.effort` (TRN-248).
    sends_reasoning: bool = False
    # `usage.include` besides `stream_options.include_usage` (FLD-011).
    asks_price: bool = False
    # `strict` of a tool (PIP-115).
    strict_tools: bool = False
    # Whether cache markers mean anything to it (FLD-012).
    caches_on_request: bool = False
    # Sent with every request.
    extra: Mapping[str, Any] = field(default_factory=dict)

    def marks_cache(self, model: str) -> bool:
        """Whether this model caches only what is marked."""
        return self.caches_on_request and model.startswith(_CACHE_ON_REQUEST)


def openrouter(base_url: str, key: str, providers: Sequence[str], fallbacks: bool) -> Dialect:
    """OpenRouter, with the upstream providers the owner prefers (TRN-247)."""
    preference: dict[str, Any] = {}
    if providers:
        preference["order"] = list(providers)
        if not fallbacks:
            preference["allow_fallbacks"] = False
    return Dialect(
        name="openrouter",
        base_url=base_url or "https://openrouter.ai/api/v1",
        key=key,
        missing_key="" if key else "OPENROUTER_API_KEY",
        sends_reasoning=True,
        asks_price=True,
        caches_on_request=True,
        extra={"provider": preference} if preference else {},
    )


def ollama(base_url: str) -> Dialect:
    """A local server that needs no key (TRN-249)."""
    return Dialect(name="ollama", base_url=base_url or "http://127.0.0.1:11434/v1")


def openai(base_url: str, key: str) -> Dialect:
    """Any OpenAI-compatible server; asked when its address or its key is set (TRN-250)."""
    return Dialect(
        name="openai",
        base_url=base_url or "https://api.openai.com/v1",
        key=key,
        missing_key="" if base_url or key else "OPENAI_API_KEY",
        strict_tools=True,
    )

"""What a call cost: what the provider says, else the owner's own price, else unknown (TRN-259)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.orchestrator.models.config import Price
from services.orchestrator.models.contract import Usage

# More than any real call; what is above was not meant as a count or a price.
_MOST_TOKENS = 1_000_000_000
_MOST_USD = 100_000.0


def read_usage(reported: Mapping[str, Any]) -> Usage:
    """Read the token counts of a ``usage`` object, in the spellings of different servers."""
    prompt = _section(reported, "prompt_tokens_details", "input_tokens_details")
    completion = _section(reported, "completion_tokens_details", "output_tokens_details")
    return Usage(
        prompt_tokens=_count(reported, "prompt_tokens", "input_tokens"),
        completion_tokens=_count(reported, "completion_tokens", "output_tokens"),
        cached_tokens=_first(
            _count(prompt, "cached_tokens"),
            _count(reported, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"),
        ),
        reasoning_tokens=_first(_count(completion, "reasoning_tokens"), _count(reported, "reasoning_tokens")),
    )


def cost_usd(reported: Mapping[str, Any], usage: Usage, own: Price | None) -> float | None:
    """The price of a call in USD; None when nobody says.

    Args:
        reported: The provider's ``usage`` object; empty when there was none.
        usage: The same, read.
        own: The owner's price of the route.
    """
    said = _amount(reported.get("cost"))
    if said is not None:
        # With a key of the owner's own behind the provider, `cost` is the provider's fee alone.
        upstream = _amount(_section(reported, "cost_details").get("upstream_inference_cost"))
        return said + (upstream or 0.0) if reported.get("is_byok") is True else said
    if own is None:
        return None
    if own.input == own.output == 0 and not own.cached_input:
        return 0.0
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.prompt_tokens)
    cached_price = own.input if own.cached_input is None else own.cached_input
    fresh = usage.prompt_tokens - cached
    return (fresh * own.input + cached * cached_price + usage.completion_tokens * own.output) / 1_000_000


def _section(reported: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        if isinstance(section := reported.get(name), Mapping):
            return section
    return {}


def _count(section: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = section.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
            return value
    return None


def _amount(value: object) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MOST_USD else None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)

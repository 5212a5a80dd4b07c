"""What a call cost: what the provider says, else the owner's own price, else unknown (TRN-259)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.orchestrator.models.config import Price
from services.orchestrator.models.contract import Usage

# More than any real call; what is above was not meant as a count or a price.
_MOST_TOKENS = 1_000_000_000
_MOST_USD = 100_000.0
# Prices are written for so many tokens.
_MILLION = 1_000_000
_CHARS_A_TOKEN = 3


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


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call cost in USD; None: nobody says."""

    usd: float | None
    # Worked out of the lengths of texts (FLD-018).
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Lengths:
    """What an estimate is made of: characters of the request and of the reply."""

    sent: int
    received: int
    # The most tokens a reply of the route can have.
    largest_output: int


def cost_of(reported: Mapping[str, Any], usage: Usage, own: Price | None, lengths: Lengths) -> Cost:
    """The price of a call: what the provider says, else the owner's price of the tokens.

    Where the owner has a price and the server reports no tokens, the tokens are estimated as a third of
    the characters; such a charge is never above the route's largest output times its price (FLD-018).

    Args:
        reported: The provider's ``usage`` object; empty when there was none.
        usage: The same, read.
        own: The owner's price of the route.
        lengths: For an estimate.
    """
    said = _amount(reported.get("cost"))
    if said is not None:
        # With a key of the owner's own behind the provider, `cost` is the provider's fee alone.
        upstream = _amount(_section(reported, "cost_details").get("upstream_inference_cost"))
        return Cost(said + (upstream or 0.0) if reported.get("is_byok") is True else said)
    if own is None:
        return Cost(None)
    if own.input == own.output == 0 and not own.cached_input:
        return Cost(0.0)
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if prompt is not None and completion is not None:
        return Cost(_priced(own, prompt, min(usage.cached_tokens or 0, prompt), completion))
    guess = _priced(
        own,
        -(-lengths.sent // _CHARS_A_TOKEN) if prompt is None else prompt,
        0,
        -(-lengths.received // _CHARS_A_TOKEN) if completion is None else completion,
    )
    most = lengths.largest_output * max(own.input, own.output) / _MILLION
    return Cost(min(guess, most), estimated=True)


def _priced(own: Price, prompt: int, cached: int, completion: int) -> float:
    cached_price = own.input if own.cached_input is None else own.cached_input
    return ((prompt - cached) * own.input + cached * cached_price + completion * own.output) / _MILLION


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

from typing import Any

import pytest

from services.orchestrator.models.config import ModelsConfig, Price
from services.orchestrator.models.contract import Route, Usage
from services.orchestrator.models.prices import Cost, Lengths, cost_of, read_usage


def cost(reported: dict[str, Any], own: Price | None = None) -> float | None:
    return cost_of(reported, read_usage(reported), own, Lengths(300, 30, 1000)).usd


TOKENS = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000}


@pytest.mark.spec("TRN-259")
@pytest.mark.parametrize(
    ("reported", "own", "expected"),
    [
        ({}, None, None),
        (TOKENS, None, None),
        ({"cost": 0}, None, 0.0),
        ({"cost": "0.25"}, None, 0.25),
        ({"cost": None, **TOKENS}, None, None),
        ({"cost": True}, None, None),
        ({"cost": -1}, None, None),
        ({"cost": float("nan")}, None, None),
        ({"cost": float("inf")}, None, None),
        ({"cost": 1e300}, None, None),
        ({"cost": 10**400}, None, None),
        ({"cost": {}}, None, None),
        ({"cost": 0.01, **TOKENS}, Price(5, 5), 0.01),
        (TOKENS, Price(2.0, 10.0), 3.0),
        ({**TOKENS, "prompt_tokens_details": {"cached_tokens": 500_000}}, Price(2.0, 10.0, 0.2), 2.1),
        ({**TOKENS, "prompt_tokens_details": {"cached_tokens": 500_000}}, Price(2.0, 10.0), 3.0),
        ({}, Price(0, 0), 0.0),
        ({"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}, None, 0.021),
        ({"cost": 0.001, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.02}}, None, 0.001),
    ],
)
def test_an_unknown_price_is_none_and_never_zero(
    reported: dict[str, Any], own: Price | None, expected: float | None
) -> None:
    found = cost(reported, own)
    assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.spec("TRN-258")
@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({}, Usage()),
        ({"prompt_tokens": 3.0, "completion_tokens": "x"}, Usage(prompt_tokens=3)),
        ({"input_tokens": 3, "output_tokens": 4}, Usage(3, 4)),
        ({"prompt_tokens": True}, Usage()),
        ({"prompt_tokens": 10**12}, Usage()),
        (
            {"prompt_tokens_details": None, "completion_tokens_details": {"reasoning_tokens": 5}},
            Usage(reasoning_tokens=5),
        ),
        ({"cache_read_input_tokens": 7}, Usage(cached_tokens=7)),
    ],
)
def test_counts_are_read_in_every_spelling(reported: dict[str, Any], expected: Usage) -> None:
    assert read_usage(reported) == expected


def test_a_price_for_all_models_of_a_provider_yields_to_the_route_s_own() -> None:
    free, paid = Price(0, 0), Price(1, 1)
    config = ModelsConfig(routes=[], prices={Route("ollama", "*"): free, Route("ollama", "big"): paid})
    assert config.price(Route("ollama", "small")) == free
    assert config.price(Route("ollama", "big")) == paid
    assert config.price(Route("openai", "big")) is None


def test_keys_are_not_printed() -> None:
    assert "sk-secret" not in repr(ModelsConfig(routes=[], variables={"OPENAI_API_KEY": "sk-secret"}))


@pytest.mark.spec("FLD-018")
@pytest.mark.parametrize(
    ("reported", "own", "lengths", "expected"),
    [
        # A third of the characters, rounded up.
        ({}, Price(3.0, 6.0), Lengths(300, 31, 10_000), Cost(0.000366, True)),
        ({"prompt_tokens": 50}, Price(3.0, 6.0), Lengths(300, 30, 10_000), Cost(0.00021, True)),
        ({"completion_tokens": 50}, Price(3.0, 6.0), Lengths(300, 30, 10_000), Cost(0.0006, True)),
        # Never above the largest output times its price.
        ({}, Price(3.0, 6.0), Lengths(3_000_000, 30, 1000), Cost(0.006, True)),
        ({}, Price(3.0, 6.0), Lengths(300, 3_000_000, 1000), Cost(0.006, True)),
        # Where somebody says, nothing is guessed.
        (TOKENS, Price(2.0, 10.0), Lengths(300, 30, 1), Cost(3.0)),
        ({"cost": 9}, Price(2.0, 10.0), Lengths(300, 30, 1), Cost(9.0)),
        ({}, Price(0, 0), Lengths(300, 30, 1000), Cost(0.0)),
        ({}, None, Lengths(300, 30, 1000), Cost(None)),
    ],
)
def test_an_estimate_is_marked_and_bounded(
    reported: dict[str, Any], own: Price | None, lengths: Lengths, expected: Cost
) -> None:
    found = cost_of(reported, read_usage(reported), own, lengths)
    assert found.estimated is expected.estimated
    assert found.usd == (None if expected.usd is None else pytest.approx(expected.usd))

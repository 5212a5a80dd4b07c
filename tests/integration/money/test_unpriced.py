"""Calls without a price end, the owner's own prices count, and guesses are marked (FLD-018)."""

from __future__ import annotations

import pytest

from tests.fixtures.crew import names_of
from tests.fixtures.model_server import ModelServer, text
from tests.integration.money.conftest import Asking, Rows
from tests.integration.money.test_budgets import costing


def unpriced(rows: Rows, conversation_id: str, count: int, age: str = "0") -> None:
    rows(
        "insert into side_calls (at, purpose, agent_id, conversation_id, provider, model) "
        "select now() - %s::interval, 'image', 'default', %s, 'p', 'm' from generate_series(1, %s)",
        age,
        conversation_id,
        count,
    )
    rows(
        "update conversations set unknown_cost_calls = unknown_cost_calls + %s where id = %s",
        count,
        conversation_id,
    )


@pytest.mark.spec("FLD-018")
async def test_two_hundred_unpriced_calls_a_day_end_a_conversation(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    async with asking() as crew:
        model_server.play(*(text("ok", usage=costing(None)) for _ in range(2)))
        conversation_id, other = await crew.open(), await crew.open()
        unpriced(rows, conversation_id, 150, age="25 hours")
        unpriced(rows, conversation_id, 199)
        assert names_of(await crew.send(conversation_id, "the last one"))[-1] == "done"
        events = await crew.send(conversation_id, "one more")
        assert names_of(events) == ["halted"]
        assert events[-1].halted.reason == "budget"
        assert "unpriced" in events[-1].halted.text
        assert len(model_server.requests) == 1
        assert names_of(await crew.send(other, "elsewhere"))[-1] == "done"
        # Another day.
        rows("update side_calls set at = at - interval '25 hours'")
        assert names_of(await crew.send(conversation_id, "tomorrow"))[-1] == "done"


@pytest.mark.spec("FLD-018", "TRN-259")
@pytest.mark.parametrize(
    ("price", "usage", "cost", "estimated"),
    [
        ("", costing(None), None, False),
        ("{input: 0, output: 0}", costing(None), 0.0, False),
        ("{input: 0, output: 0}", None, 0.0, False),
        ("{input: 10, output: 100}", costing(None), 0.002, False),
        ("{input: 10, output: 100}", costing(0.5), 0.5, False),
    ],
)
async def test_own_prices_count_where_the_provider_names_none(
    price: str,
    usage: dict[str, float] | None,
    cost: float | None,
    estimated: bool,
    asking: Asking,
    model_server: ModelServer,
) -> None:
    config = f"prices: {{'openai:*': {price}}}\n" if price else ""
    async with asking(config) as crew:
        model_server.play(text("ok", usage=usage))
        conversation_id = await crew.open()
        await crew.send(conversation_id, "go")
        found = await crew.get(conversation_id)
        reply = found.messages[-1]
        assert (reply.cost_usd if reply.HasField("cost_usd") else None) == (
            None if cost is None else pytest.approx(cost)
        )
        assert reply.cost_estimated is estimated
        assert found.unknown_cost_calls == (1 if cost is None else 0)
        assert found.spent_usd == pytest.approx(cost or 0)


@pytest.mark.spec("FLD-018")
async def test_an_estimated_charge_is_marked_and_bounded(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    config = "prices: {'openai:test': {input: 10, output: 100, max_output_tokens: 40}}\n"
    async with asking(config) as crew:
        model_server.play(text("x" * 9000, usage=None), text("ok", usage=costing(None)))
        conversation_id = await crew.open()
        await crew.send(conversation_id, "go")
        found = await crew.get(conversation_id)
        assert found.messages[-1].cost_estimated
        # 3,000 tokens of reply by its length; the route says that no reply has more than 40.
        assert found.messages[-1].cost_usd == pytest.approx(40 * 100 / 1e6)
        assert found.spent_usd == pytest.approx(found.messages[-1].cost_usd)
        [step] = [step for step in (await crew.last_run(conversation_id)).steps if step.kind == "model"]
        assert step.cost_estimated
        await crew.send(conversation_id, "again")
        [step] = [step for step in (await crew.last_run(conversation_id)).steps if step.kind == "model"]
        assert not step.HasField("cost_estimated")
        assert rows("select cost_estimated from messages where role = 'assistant' order by id") == [
            {"cost_estimated": True},
            {"cost_estimated": False},
        ]

"""Model calls outside the loop: each is in the ledger, and none loses its answer to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import psycopg
import pytest

from services.common.wording import load
from services.orchestrator.models.config import ModelsConfig
from services.orchestrator.models.contract import (
    AllRoutesFailed,
    ChatMessage,
    ModelEvent,
    ModelRequest,
    Route,
    Served,
)
from services.orchestrator.models.facade import Models
from services.orchestrator.money.account import Account
from services.orchestrator.money.notices import BudgetNotices
from services.orchestrator.money.side_calls import BudgetSpent, SideCalls
from services.orchestrator.money.treasury import Treasury
from services.orchestrator.store import conversations, ledger
from services.orchestrator.store.ledger import PURPOSES
from services.orchestrator.store.pool import Database
from services.orchestrator.store.records import Usage
from services.orchestrator.store.spending import Budget
from tests.fixtures.crew import until
from tests.fixtures.model_server import ModelServer, text, turn
from tests.integration.money.conftest import Rows
from tests.integration.money.test_budgets import costing

ME = Account("ann")
ENTRIES = """
    select purpose, agent_id, provider, model, prompt_tokens, cost_usd::float8 from side_calls order by id
"""
NAMED_BY_THE_PAGES = {
    "tool_summary", "image", "pdf", "script", "transcribe", "consolidate", "title", "recap", "wiki",
    "compact", "route", "brief", "review", "verify", "relevance",
}  # fmt: skip


def request(*models: str) -> ModelRequest:
    return ModelRequest(
        routes=[Route("openai", model) for model in models or ("m",)],
        system="a secret prompt",
        messages=[ChatMessage("user", "name this")],
        purpose="title",
    )


def entry(cost: float | None, *, model: str = "m", tokens: int | None = 100) -> dict[str, Any]:
    return {
        "purpose": "title",
        "agent_id": "ann",
        "provider": "openai",
        "model": model,
        "prompt_tokens": tokens,
        "cost_usd": cost,
    }


class Watched(Models):
    """Says when whoever asked has heard that a provider began to answer."""

    heard: asyncio.Event

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                yield event
                if isinstance(event, Served):
                    self.heard.set()


@pytest.fixture
async def models(model_server: ModelServer) -> AsyncIterator[Watched]:
    async def at_once(_: float) -> None:
        return None

    made = Watched(ModelsConfig([], variables={"OPENAI_BASE_URL": model_server.base_url}), sleep=at_once)
    made.heard = asyncio.Event()
    yield made
    await made.close()


@pytest.fixture
def side_calls(models: Models, store: Database) -> SideCalls:
    budgets = [Budget("crew", "", "day", 0.05)]
    return SideCalls(models, store, Treasury(store, budgets, BudgetNotices(load("orchestrator"), "en")))


@pytest.mark.spec("TRN-264", "TRN-259", "FLD-016")
async def test_each_call_leaves_one_entry_and_never_the_prompt(
    side_calls: SideCalls, model_server: ModelServer, rows: Rows
) -> None:
    model_server.play(text("A", usage=costing(0.002)), text("B", usage=costing(None)), text("C", usage=None))
    replies = [await side_calls.ask(request(), "title", ME) for _ in range(3)]
    assert [reply.text for reply in replies] == ["A", "B", "C"]
    assert rows(ENTRIES) == [entry(0.002), entry(None), entry(None, tokens=None)]
    [row] = rows("select row_to_json(s)::text as whole from side_calls s order by id limit 1")
    assert "secret" not in row["whole"]
    [day] = rows("select calls, unknown_cost_calls, cost_usd::float8 from spending")
    assert day == {"calls": 3, "unknown_cost_calls": 2, "cost_usd": 0.002}
    assert rows("select 1 from reservations") == []


@pytest.mark.spec("TRN-265", "TRN-349")
async def test_the_ledger_knows_its_purposes_and_refuses_others(
    side_calls: SideCalls, store: Database, model_server: ModelServer
) -> None:
    assert NAMED_BY_THE_PAGES < PURPOSES
    async with store.transaction() as connection:
        for purpose in sorted(PURPOSES):
            await record(connection, purpose)
        with pytest.raises(ValueError, match="gossip"):
            await record(connection, "gossip")
    with pytest.raises(ValueError, match="gossip"):
        await side_calls.ask(request(), "gossip", ME)  # type: ignore[arg-type]
    assert model_server.requests == []
    with pytest.raises(psycopg.errors.CheckViolation):
        async with store.connection() as connection:
            await connection.execute(
                "insert into side_calls (purpose, agent_id, provider, model) values ('gossip', 'a', 'p', 'm')"
            )


async def record(connection: Any, purpose: Any) -> None:
    await ledger.record(
        connection,
        purpose,
        agent_id="ann",
        conversation_id=None,
        run_id=None,
        provider="p",
        model="m",
        usage=Usage(),
        cost_usd=0,
    )


@pytest.mark.spec("TRN-268", "TRN-246", "TRN-267")
async def test_after_a_fallback_only_calls_that_had_begun_to_answer_are_entered(
    side_calls: SideCalls, model_server: ModelServer, rows: Rows
) -> None:
    model_server.play(turn(status=402, body={}), text("ok", usage=costing(0.001)))
    assert (await side_calls.ask(request("refuses", "answers"), "title", ME)).text == "ok"
    assert rows(ENTRIES) == [entry(0.001, model="answers")]
    # A first attempt that broke off before any text had been served, and may have been billed.
    model_server.play(turn({"reasoning": "Hm"}, {"drop": True}), text("ok", usage=costing(0.001)))
    assert (await side_calls.ask(request("twice"), "title", ME)).text == "ok"
    assert rows(ENTRIES)[1:] == [entry(0.001, model="twice"), entry(None, model="twice", tokens=None)]
    model_server.play(turn(status=402, body={}))
    with pytest.raises(AllRoutesFailed):
        await side_calls.ask(request("refuses"), "title", ME)
    assert len(rows(ENTRIES)) == 3


@pytest.mark.spec("TRN-267")
async def test_a_call_that_is_left_after_it_began_to_answer_has_an_unknown_price(
    side_calls: SideCalls, models: Watched, model_server: ModelServer, rows: Rows
) -> None:
    gate = model_server.gate("mid")
    model_server.play(turn({"text": "One "}, {"gate": "mid"}, {"text": "two"}, usage=costing(0.001)))
    asking = asyncio.create_task(side_calls.ask(request(), "title", ME))
    async with asyncio.timeout(30):
        await models.heard.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    gate.release()
    assert rows(ENTRIES) == [entry(None, tokens=None)]
    assert rows("select 1 from reservations") == []


@pytest.mark.spec("TRN-269")
async def test_a_failing_ledger_loses_no_answer(
    side_calls: SideCalls, model_server: ModelServer, rows: Rows
) -> None:
    rows("revoke insert on side_calls from crew_app")
    model_server.play(text("Kept all the same.", usage=costing(0.002)))
    assert (await side_calls.ask(request(), "title", ME)).text == "Kept all the same."
    assert rows(ENTRIES) == []


@pytest.mark.spec("FLD-016")
async def test_no_call_is_made_past_a_budget(
    side_calls: SideCalls, model_server: ModelServer, rows: Rows
) -> None:
    model_server.play(text("A", usage=costing(0.06)))
    await side_calls.ask(request(), "title", ME)
    with pytest.raises(BudgetSpent):
        await side_calls.ask(request(), "title", ME)
    assert len(model_server.requests) == 1


async def test_an_entry_outlives_the_conversation_and_the_run_it_was_made_for(
    store: Database, rows: Rows
) -> None:
    gone = "00000000-0000-0000-0000-00000000000a"
    async with store.transaction() as connection:
        await ledger.record(
            connection,
            "recap",
            agent_id="ann",
            conversation_id=gone,
            run_id=gone,
            provider="p",
            model="m",
            usage=Usage(),
            cost_usd=0.1,
        )
    assert rows("select conversation_id, run_id from side_calls") == [
        {"conversation_id": None, "run_id": None}
    ]


@pytest.mark.spec("TRN-264", "TRN-269")
async def test_an_entry_is_made_when_its_conversation_is_deleted_at_that_very_moment(
    side_calls: SideCalls, store: Database, model_server: ModelServer, rows: Rows
) -> None:
    leaving = "00000000-0000-0000-0000-00000000000b"
    rows(
        "insert into conversations (id, agent_id, channel, autonomous, cost_cap_usd) "
        "values (%s, 'ann', 'web', false, 1)",
        leaving,
    )
    model_server.play(text("A title", usage=costing(0.002)))

    async def waits_for_the_deletion() -> bool:
        return bool(
            rows(
                "select 1 from pg_stat_activity where wait_event_type = 'Lock' "
                "and datname = current_database() and query like '%insert into side_calls%'"
            )
        )

    async with store.transaction() as deleting:
        assert await conversations.delete(deleting, leaving)
        asking = asyncio.create_task(side_calls.ask(request(), "title", Account("ann", leaving)))
        await until(waits_for_the_deletion)
    async with asyncio.timeout(30):
        assert (await asking).text == "A title"
    assert rows(ENTRIES) == [entry(0.002)]
    assert rows("select conversation_id, run_id from side_calls") == [
        {"conversation_id": None, "run_id": None}
    ]
    assert rows("select calls, cost_usd::float8 from spending") == [{"calls": 1, "cost_usd": 0.002}]

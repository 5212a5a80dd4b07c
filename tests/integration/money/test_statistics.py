"""`/api/stats`: the whole ledger, by day, model, purpose and agent."""

from __future__ import annotations

import pytest
from crew.v1 import conversations_pb2, system_pb2

from services.common.times import day_in
from tests.fixtures.crew import Crew, names_of
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import gateway_before
from tests.fixtures.model_server import ModelServer, text, turn
from tests.integration.money.conftest import Asking, Rows
from tests.integration.money.test_budgets import costing, spend

CACHED = {"prompt_tokens": 1000, "completion_tokens": 10, "cost": 0.01}


async def stats(crew: Crew) -> system_pb2.StatsReply:
    reply: system_pb2.StatsReply = await crew.system.Stats(system_pb2.StatsRequest())
    return reply


@pytest.mark.spec("TRN-330", "TRN-331", "TRN-266", "TRN-273", "GTW-095")
async def test_everything_is_added_up_in_every_way(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    async with asking() as crew:
        model_server.play(
            text("a", usage={**CACHED, "prompt_tokens_details": {"cached_tokens": 600}}),
            text("b", usage={**CACHED, "completion_tokens_details": {"reasoning_tokens": 7}}),
            text("c", usage=None),
        )
        conversation_id = await crew.open()
        for _ in range(3):
            await crew.send(conversation_id, "go")
        # The same model at another provider; an agent of whose calls no price is known.
        rows(
            "insert into side_calls (purpose, agent_id, provider, model, prompt_tokens, completion_tokens, "
            "cached_tokens, cost_usd) values ('title', 'default', 'other', 'test', 50, 5, 0, 0.5), "
            "('image', 'other', 'p', 'm', 70, 7, null, null)"
        )
        found = await stats(crew)
        [day] = found.days
        assert (day.day, day.calls, day.unknown_cost_calls) == (day_in("UTC").isoformat(), 5, 2)
        assert day.cost_usd == pytest.approx(0.52)
        assert (day.prompt_tokens, day.completion_tokens) == (2120, 32)
        assert (day.cached_tokens, day.reasoning_tokens) == (600, 7)
        models = [(m.provider, m.model, m.calls, m.unknown_cost_calls) for m in found.models]
        assert models == [("openai", "test", 3, 1), ("other", "test", 1, 0), ("p", "m", 1, 1)]
        assert [(p.purpose, p.calls) for p in found.purposes] == [("image", 1), ("title", 1), ("turn", 3)]
        assert [(a.agent_id, a.calls) for a in found.by_agent] == [("default", 4), ("other", 1)]
        # Unknown is not 0: there is no sum of nothing.
        assert found.by_agent[0].HasField("cost_usd")
        assert not found.by_agent[1].HasField("cost_usd")
        # The call without a cache figure is in no row.
        caches = [(c.agent_id, c.prompt_tokens, c.cached_tokens) for c in found.cache_by_agent]
        assert caches == [("default", 1050, 600), ("other", 0, 0)]
        assert found.unknown_cache_calls == 2


@pytest.mark.spec("TRN-332")
@pytest.mark.parametrize(
    ("zone", "days"),
    [("UTC", ["2026-03-01", "2026-03-02"]), ("Asia/Ho_Chi_Minh", ["2026-03-02", "2026-03-03"])],
)
async def test_days_are_the_persons(zone: str, days: list[str], asking: Asking, rows: Rows) -> None:
    async with asking(environ={"MY_AGENT_TIMEZONE": zone}) as crew:
        rows(
            "insert into side_calls (at, purpose, agent_id, provider, model, cost_usd) values "
            "('2026-03-01 20:00+00', 'title', 'a', 'p', 'm', 1), "
            "('2026-03-02 20:00+00', 'title', 'a', 'p', 'm', 2)"
        )
        found = await stats(crew)
        assert [day.day for day in found.days] == days
        assert found.timezone == zone


@pytest.mark.spec("TRN-333", "GTW-095")
async def test_the_last_answer_is_kept_until_something_is_written(asking: Asking, rows: Rows) -> None:
    async with asking() as crew:
        spend(rows, 1)
        first = await stats(crew)
        # Past the ledger's own way of writing: only an answer worked out anew would show it.
        rows("update side_calls set cost_usd = 2")
        assert await stats(crew) == first
        conversation_id = await crew.open(title="renamed")
        await crew.conversations.Delete(conversations_pb2.DeleteConversationRequest(id=conversation_id))
        assert await stats(crew) == first
        # Written by another process.
        spend(rows, 3)
        assert [day.cost_usd for day in (await stats(crew)).days] == [5]


@pytest.mark.spec("GTW-095", "TRN-259")
async def test_over_http_unknown_is_null(asking: Asking, rows: Rows) -> None:
    async with asking() as crew:
        rows("insert into side_calls (purpose, agent_id, provider, model) values ('title', 'a', 'p', 'm')")
        address = crew.environ["MY_AGENT_ORCHESTRATOR_LISTEN"]
        async with gateway_before(address, crew.folder / "secrets", FakeOrchestrator()) as gateway:
            body = (await gateway.http.get("/api/stats")).json()
            assert set(body) >= {
                "days",
                "models",
                "purposes",
                "by_agent",
                "cache_by_agent",
                "unknown_cache_calls",
                "pending_proposals",
            }
            assert (body["purposes"][0]["cost_usd"], body["purposes"][0]["unknown_cost_calls"]) == (None, 1)
            budgets = (await gateway.http.get("/api/budgets")).json()
            assert budgets["budgets"][0]["go_on_today"] is None
            said = await gateway.http.post("/api/budgets/go-on", json={"go_on": True})
            # Nothing is spent, so there was nothing to say.
            assert (said.status_code, said.json()["budgets"][0]["go_on_today"]) == (200, None)


@pytest.mark.spec("TRN-322", "TRN-328", "TRN-261")
async def test_endings_and_conversations_say_what_was_spent(
    asking: Asking, model_server: ModelServer
) -> None:
    async with asking() as crew:
        model_server.play(text("a", usage=costing(0.02)), text("b", usage=costing(None)))
        conversation_id = await crew.open(cost_cap_usd=0.03)
        done = (await crew.send(conversation_id, "one"))[-1].done
        assert (done.spent_usd, done.unknown_cost_calls) == (pytest.approx(0.02), 0)
        done = (await crew.send(conversation_id, "two"))[-1].done
        assert (done.spent_usd, done.unknown_cost_calls) == (pytest.approx(0.02), 1)
        for cap, over in ((0.03, False), (0.02, True), (0.0, False), (0.01, True)):
            request = conversations_pb2.UpdateConversationRequest(id=conversation_id, cost_cap_usd=cap)
            request.update_mask.paths.append("cost_cap_usd")
            assert (await crew.conversations.Update(request)).over_budget is over
            listed = await crew.conversations.List(conversations_pb2.ListConversationsRequest())
            assert [found.over_budget for found in listed.conversations] == [over]
            assert (await crew.get(conversation_id)).over_budget is over
        events = await crew.send(conversation_id, "three")
        assert names_of(events) == ["halted"]
        assert (events[-1].halted.spent_usd, events[-1].halted.unknown_cost_calls) == (
            pytest.approx(0.02),
            1,
        )
        found = await crew.get(conversation_id)
        assert (found.spent_usd, found.unknown_cost_calls) == (pytest.approx(0.02), 1)
        assert not found.running
        assert list(found.queued) == []
        assert not found.HasField("pending_approval")
        assert not found.HasField("forked_from")


@pytest.mark.spec("TRN-239", "TRN-267")
async def test_a_reply_that_broke_off_is_an_entry_of_unknown_price(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    async with asking() as crew:
        model_server.play(turn({"text": "Half of "}, {"drop": True}))
        conversation_id = await crew.open()
        assert names_of(await crew.send(conversation_id, "go"))[-1] == "error"
        assert rows("select purpose, cost_usd from side_calls") == [
            {"purpose": "abandoned", "cost_usd": None}
        ]
        [purpose] = (await stats(crew)).purposes
        assert (purpose.purpose, purpose.unknown_cost_calls) == ("abandoned", 1)
        assert (await crew.get(conversation_id)).unknown_cost_calls == 1
        assert rows("select 1 from reservations") == []

"""Budgets by day and month: who is stopped, who is asked, and whose day it is (FLD-016)."""

from __future__ import annotations

import pytest
from crew.v1 import budgets_pb2, conversations_pb2, crew_pb2, system_pb2, turns_pb2

from services.common.times import day_in
from tests.fixtures.crew import Crew, Events, names_of, until
from tests.fixtures.model_server import ModelServer, call, text
from tests.integration.money.conftest import Asking, Rows, budgets_of

CENTS = "budgets: {crew: {day: 0.05}}\n"


def costing(usd: float | None) -> dict[str, float]:
    """Usage of a call of this price, or of none."""
    tokens = {"prompt_tokens": 100, "completion_tokens": 10}
    return tokens if usd is None else {**tokens, "cost": usd}


def spend(rows: Rows, usd: float, *, agent: str = "default", purpose: str = "title") -> None:
    """An entry of the ledger that no turn of the test made."""
    rows(
        "insert into side_calls (purpose, agent_id, provider, model, cost_usd) values (%s, %s, 'p', 'm', %s)",
        purpose,
        agent,
        usd,
    )


async def unattended(crew: Crew, words: str = "go") -> Events:
    """A turn that a program began and nobody looks at."""
    return await crew.read(crew.automation.Send(crew_pb2.SendRequest(text=words, channel="api")))


async def answer_to(events: Events) -> str:
    assert names_of(events)[-1] == "approval_required"
    return events[-1].approval_required.approval.id


@pytest.mark.spec("FLD-016")
async def test_a_turn_nobody_attends_asks_no_model_past_a_budget(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    async with asking(CENTS) as crew:
        model_server.play(call("workspace_list", {"path": "."}, usage=costing(0.06)))
        events = await unattended(crew)
        # The call that passed it is shown and charged; the next one of the same turn is not made.
        assert names_of(events)[-1] == "halted"
        assert (events[-1].halted.reason, events[-1].halted.spent_usd) == ("budget", pytest.approx(0.06))
        assert "nobody attends" in events[-1].halted.text
        assert "$0.0500 a day, of which $0.0600" in events[-1].halted.text
        assert names_of(await unattended(crew)) == ["halted"]
        assert len(model_server.requests) == 1
        assert rows("select status, summary from runs") == [{"status": "halted", "summary": "budget"}] * 2


@pytest.mark.spec("FLD-016")
async def test_an_attended_turn_asks_once_a_day(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    async with asking(CENTS) as crew:
        spend(rows, 0.05)
        first, second = await crew.open(), await crew.open()
        events = await crew.send(first, "hello")
        asked = events[-1].approval_required.approval
        assert (asked.kind, asked.tool, asked.may_always) == ("budget", "budget", False)
        assert "the crew's budget of $0.0500 a day" in asked.summary
        assert model_server.requests == []
        events = await crew.decide(asked.id, approve=True, always=True)
        assert events[-1].done.text == "Hello from the model."
        assert (await crew.last_run(first)).status == "done"
        # The word holds for the day and for every conversation.
        assert names_of(await crew.send(second, "hello"))[-1] == "done"
        assert names_of(await crew.send(first, "more"))[-1] == "done"
        # It is not the word of somebody who attends a program's turn.
        assert names_of(await unattended(crew)) == ["halted"]
        rows("update budget_answers set day = day - 1")
        assert names_of(await crew.send(second, "tomorrow"))[-1] == "approval_required"


@pytest.mark.spec("FLD-016")
async def test_a_no_holds_for_the_day_and_can_be_changed(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    async with asking(CENTS) as crew:
        spend(rows, 0.05)
        conversation_id = await crew.open()
        request = await answer_to(await crew.send(conversation_id, "hello"))
        events = await crew.decide(request, approve=False)
        assert names_of(events) == ["halted"]
        assert "you said not to go on today" in events[-1].halted.text
        assert names_of(await crew.send(conversation_id, "and now?")) == ["halted"]
        assert model_server.requests == []
        reply = await budgets_of(crew).GoOn(budgets_pb2.GoOnRequest(go_on=True))
        assert [(b.state, b.go_on_today) for b in reply.budgets] == [("spent", True)]
        assert names_of(await crew.send(conversation_id, "and now?"))[-1] == "done"


@pytest.mark.spec("FLD-016")
async def test_no_answer_is_a_no_for_this_turn_alone(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    async with asking(CENTS) as crew:
        spend(rows, 0.05)
        conversation_id = await crew.open()
        await answer_to(await crew.send(conversation_id, "hello"))
        rows("update approvals set expires_at = now()")

        async def ended() -> bool:
            return (await crew.last_run(conversation_id)).status == "halted"

        await until(ended)
        assert model_server.requests == []
        assert names_of(await crew.send(conversation_id, "hello?"))[-1] == "approval_required"


@pytest.mark.spec("FLD-016")
async def test_a_yes_to_one_budget_is_no_yes_to_another(asking: Asking, rows: Rows) -> None:
    config = "budgets: {crew: {day: 0.05}, agents: {default: {month: 0.02}}}\n"
    async with asking(config) as crew:
        spend(rows, 0.03)
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "hello")
        summary = events[-1].approval_required.approval.summary
        assert "default's budget of $0.0200 a month" in summary
        assert "crew" not in summary
        await crew.decide(await answer_to(events), approve=True)
        spend(rows, 0.02)
        events = await crew.send(conversation_id, "more")
        assert "the crew's budget" in events[-1].approval_required.approval.summary


@pytest.mark.spec("FLD-016")
async def test_agents_and_schedules_have_budgets_of_their_own(asking: Asking, rows: Rows) -> None:
    config = """
budgets:
  crew: {day: 5}
  agents: {default: {day: 1}, other: {day: 2, month: 3}}
  schedules: {default/morning: {day: 0.5}}
"""
    async with asking(config) as crew:
        # An entry of a job's run, one of an agent, one of last month.
        rows(
            "insert into runs (id, conversation_id, agent_id, source, status, after_seq) values "
            "('00000000-0000-0000-0000-000000000001', gen_random_uuid(), 'default', 'job:default/morning', "
            "'done', 0)"
        )
        rows(
            "insert into side_calls (purpose, agent_id, run_id, provider, model, cost_usd) values "
            "('brief', 'default', '00000000-0000-0000-0000-000000000001', 'p', 'm', 0.4), "
            "('image', 'other', null, 'p', 'm', 1.7), ('image', 'other', null, 'p', 'm', null)"
        )
        rows("insert into spending (day, agent_id, cost_usd) values (current_date - 40, 'other', 9)")
        reply = await budgets_of(crew).List(budgets_pb2.BudgetsRequest())
        stand = {
            (b.scope, b.id, b.period): (b.limit_usd, round(b.spent_usd, 6), b.unknown_cost_calls, b.state)
            for b in reply.budgets
        }
        assert stand == {
            ("crew", "", "day"): (5, 2.1, 1, "free"),
            ("agent", "default", "day"): (1, 0.4, 0, "free"),
            ("agent", "other", "day"): (2, 1.7, 1, "near"),
            ("agent", "other", "month"): (3, 1.7, 1, "free"),
            ("schedule", "default/morning", "day"): (0.5, 0.4, 0, "near"),
        }
        assert (reply.day, reply.timezone) == (day_in("UTC").isoformat(), "UTC")


@pytest.mark.spec("FLD-016")
async def test_nothing_but_five_dollars_a_day_is_said_by_default(asking: Asking, rows: Rows) -> None:
    async with asking() as crew:
        [budget] = (await budgets_of(crew).List(budgets_pb2.BudgetsRequest())).budgets
        assert (budget.scope, budget.period, budget.limit_usd) == ("crew", "day", 5.0)
        spend(rows, 4.999)
        assert names_of(await unattended(crew))[-1] == "done"
        spend(rows, 0.001)
        assert names_of(await unattended(crew)) == ["halted"]


@pytest.mark.spec("FLD-016", "TRN-003", "TRN-332")
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
async def test_a_day_is_the_persons(zone: str, asking: Asking, rows: Rows) -> None:
    async with asking(environ={"MY_AGENT_TIMEZONE": zone}) as crew:
        inbound = await crew.turns.Inbound(turns_pb2.InboundRequest(text="hello"))
        [spent] = rows("select day, cost_usd::float8 from spending")
        assert spent == {"day": day_in(zone), "cost_usd": pytest.approx(0.001)}
        [budget] = (await budgets_of(crew).List(budgets_pb2.BudgetsRequest())).budgets
        assert budget.spent_usd == pytest.approx(0.001)
        # What was spent on the days around it is not of today.
        rows("update spending set day = day - 1")
        [budget] = (await budgets_of(crew).List(budgets_pb2.BudgetsRequest())).budgets
        assert budget.spent_usd == 0
        [daily] = rows(
            "select day from daily_conversations where conversation_id = %s", inbound.conversation_id
        )
        assert daily["day"] == day_in(zone)


@pytest.mark.spec("FLD-016", "TRN-266")
async def test_deleting_a_conversation_gives_no_money_back(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    async with asking(CENTS) as crew:
        model_server.play(text("ok", usage=costing(0.06)))
        conversation_id = await crew.open()
        await crew.send(conversation_id, "hello")
        before = await crew.system.Stats(system_pb2.StatsRequest())
        await crew.conversations.Delete(conversations_pb2.DeleteConversationRequest(id=conversation_id))
        rows("insert into spending (day, agent_id, calls) values ('2020-01-01', 'nobody', 1)")
        after = await crew.system.Stats(system_pb2.StatsRequest())
        assert before == after
        assert names_of(await unattended(crew)) == ["halted"]

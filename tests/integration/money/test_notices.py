"""What the owner is told of budgets: once in a day or month, until it is over (FLD-016)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from crew.v1 import budgets_pb2, notifications_pb2, notifications_pb2_grpc, runs_pb2

from services.common.wording import Locale, load
from services.orchestrator.money.account import Account
from services.orchestrator.money.notices import BudgetNotices
from services.orchestrator.money.treasury import Treasury
from services.orchestrator.store import notifications
from services.orchestrator.store.pool import Database
from services.orchestrator.store.spending import Budget
from tests.fixtures.crew import Crew, until
from tests.fixtures.model_server import ModelServer, text
from tests.integration.money.conftest import Asking, Rows, budgets_of
from tests.integration.money.test_budgets import CENTS, answer_to, costing, spend

Notification = notifications_pb2.Notification
CREW_DAY = Budget("crew", "", "day", 1.0)


async def told(crew: Crew) -> list[Notification]:
    """What the owner was told, oldest first."""
    stub: notifications_pb2_grpc.NotificationsAsyncStub = crew.stub(notifications_pb2_grpc.NotificationsStub)
    reply = await stub.List(notifications_pb2.ListNotificationsRequest())
    return [each for each in reversed(reply.notifications) if each.kind == "budget"]


async def until_over(crew: Crew, count: int = 1) -> list[Notification]:
    async def over() -> bool:
        return sum(each.HasField("over_at") for each in await told(crew)) >= count

    await until(over)
    return await told(crew)


def treasury(store: Database, *budgets: Budget, locale: Locale = "en") -> Treasury:
    return Treasury(store, budgets, BudgetNotices(load("orchestrator"), locale))


def notices(rows: Rows) -> list[dict[str, Any]]:
    return rows("select cause, subject, agent_id from notifications where kind = 'budget' order by n")


@pytest.mark.spec("FLD-016")
async def test_the_owner_is_told_once_that_a_budget_is_nearly_spent(
    asking: Asking, model_server: ModelServer
) -> None:
    async with asking("budgets: {crew: {day: 1, month: 10}}\n") as crew:
        model_server.play(*(text("ok", usage=costing(usd)) for usd in (0.79, 0.02, 0.02, 0.18)))
        seen: list[runs_pb2.NotificationFrame] = []
        watching = asyncio.Event()

        async def listen() -> None:
            async for frame in crew.runs.Activity(runs_pb2.ActivityRequest()):
                watching.set()
                # One without a notification says how many are unread alone, as after a new connection.
                if frame.HasField("notification") and frame.notification.HasField("notification"):
                    seen.append(frame.notification)

        async def shown() -> bool:
            return bool(seen)

        listening = asyncio.create_task(listen())
        async with asyncio.timeout(30):
            await watching.wait()
        conversation_id = await crew.open(cost_cap_usd=0)
        await crew.send(conversation_id, "one")
        assert await told(crew) == []
        await crew.send(conversation_id, "two")
        await until(shown)
        assert (seen[0].notification.kind, seen[0].unread) == ("budget", 1)
        await crew.send(conversation_id, "three")
        await crew.end("orchestrator")
        await asyncio.wait({listening}, timeout=30)
        await asyncio.gather(listening, return_exceptions=True)
        await crew.start("orchestrator")
        # All of it is spent by this one; the owner knows already.
        await crew.send(conversation_id, "four")
        (notification,) = await told(crew)
        assert (notification.cause, notification.subject) == ("nearly_spent", "crew.day")
        assert "the crew's budget of $1.00 a day, of which $0.81 is spent" in notification.text
        assert not notification.HasField("over_at")
        assert not notification.HasField("agent_id")


@pytest.mark.spec("FLD-016")
async def test_the_word_to_go_on_ends_it_and_nobody_is_told_again(
    asking: Asking, model_server: ModelServer
) -> None:
    async with asking(CENTS) as crew:
        model_server.play(*(text("ok", usage=costing(0.06)) for _ in range(2)))
        conversation_id = await crew.open()
        await crew.send(conversation_id, "hello")
        (notification,) = await told(crew)
        assert (notification.cause, notification.HasField("over_at")) == ("spent", False)
        assert "A budget is spent: the crew's budget of $0.0500 a day" in notification.text
        await budgets_of(crew).GoOn(budgets_pb2.GoOnRequest(go_on=True))
        (notification,) = await until_over(crew)
        assert notification.HasField("read_at"), "whoever said it knows"
        await crew.send(conversation_id, "more")
        assert len(await told(crew)) == 1


@pytest.mark.spec("FLD-016")
async def test_a_yes_to_a_turn_that_asks_ends_it_and_a_no_does_not(
    asking: Asking, model_server: ModelServer, store: Database, rows: Rows
) -> None:
    async with asking(CENTS) as crew:
        model_server.play(text("ok", usage=costing(0.045)))
        conversation_id = await crew.open()
        await crew.send(conversation_id, "hello")
        assert [each.cause for each in await told(crew)] == ["nearly_spent"]
        spend(rows, 0.01)
        await crew.decide(await answer_to(await crew.send(conversation_id, "more")), approve=False)
        async with store.transaction() as connection:
            assert await notifications.end_budgets(connection) == 0
        rows("update budget_answers set day = day - 1")
        await crew.decide(await answer_to(await crew.send(conversation_id, "more")), approve=True)
        (notification,) = await until_over(crew)
        assert notification.HasField("read_at")


@pytest.mark.spec("FLD-016")
async def test_it_is_over_with_its_day_and_the_next_day_is_told_anew(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    async with asking("budgets: {crew: {day: 1}, agents: {default: {month: 1}}}\n") as crew:
        model_server.play(*(text("ok", usage=costing(0.85)) for _ in range(2)))
        conversation_id = await crew.open(cost_cap_usd=0)
        await crew.send(conversation_id, "today")
        assert [each.subject for each in await told(crew)] == ["crew.day", "agents.default.month"]
        rows("update budget_notices set starts_on = starts_on - 1 where period = 'day'")
        rows("update spending set day = day - 40")
        found = await until_over(crew)
        assert [each.HasField("over_at") for each in found] == [True, False]
        assert not found[0].HasField("read_at"), "nobody has read of it"
        await crew.send(conversation_id, "tomorrow")
        assert [each.subject for each in await told(crew)] == [
            "crew.day",
            "agents.default.month",
            "crew.day",
        ]


@pytest.mark.spec("FLD-016")
async def test_many_that_look_at_once_tell_once_and_a_swept_notification_is_not_told_again(
    store: Database, rows: Rows
) -> None:
    spend(rows, 0.9, agent="ann")
    looking = [treasury(store, CREW_DAY, Budget("agent", "ann", "day", 1.0)) for _ in range(6)]
    await asyncio.gather(*(each.look(Account("ann")) for each in looking))
    once = [
        {"cause": "nearly_spent", "subject": "agents.ann.day", "agent_id": "ann"},
        {"cause": "nearly_spent", "subject": "crew.day", "agent_id": None},
    ]
    assert sorted(notices(rows), key=lambda row: row["subject"]) == once
    rows("delete from notifications")
    await looking[0].look(Account("ann"))
    assert notices(rows) == []


@pytest.mark.spec("FLD-016")
async def test_the_owner_is_told_in_the_language_of_the_crew(store: Database, rows: Rows) -> None:
    spend(rows, 1.5)
    await treasury(store, CREW_DAY, locale="vi").look(Account("default"))
    [row] = rows("select text from notifications")
    assert row["text"].startswith("Một ngân sách đã hết: ngân sách của cả đội $1.00 mỗi ngày")

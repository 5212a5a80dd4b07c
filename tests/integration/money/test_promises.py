"""What is spent and promised never comes to more than there is, whatever runs at once (FLD-017)."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from crew.v1 import crew_pb2

from services.orchestrator.store import conversations, shares
from services.orchestrator.store.pool import Database
from services.orchestrator.store.shares import Refused, Share
from tests.fixtures.crew import Crew, Events, names_of, until
from tests.fixtures.killable import doomed
from tests.fixtures.model_server import ModelServer, turn
from tests.fixtures.postgres import ScratchDatabase
from tests.integration.money.conftest import Asking, Rows, second_orchestrator
from tests.integration.money.test_budgets import costing, spend


@pytest.mark.spec("FLD-017")
async def test_turns_of_two_orchestrators_are_promised_no_more_than_is_left(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    gate = model_server.gate("all")
    reply = turn({"gate": "all"}, {"text": "Done."}, usage=costing(0.02))
    model_server.play(*[reply] * 8)
    async with asking("budgets: {crew: {day: 1.00}}\n") as first, second_orchestrator(first) as second:
        spend(rows, 0.97)

        async def begin(crew: Crew, n: int) -> Events:
            request = crew_pb2.SendRequest(text="go", channel=f"api:{n}")
            return await crew.read(crew.automation.Send(request))

        turns = [asyncio.create_task(begin((first, second)[n % 2], n)) for n in range(8)]
        await model_server.received(3)

        async def all_run() -> bool:
            return len(rows("select 1 from turns")) == 8

        await until(all_run)
        [promised] = rows("select count(*), sum(amount_usd)::float8 as usd from reservations")
        assert promised == {"count": 3, "usd": pytest.approx(0.03)}
        gate.release()
        endings = sorted(names_of(events)[-1] for events in await asyncio.gather(*turns))
        # Three calls were promised the three cents that were left, at the expected one each.
        assert endings == ["done"] * 3 + ["halted"] * 5
        assert len(model_server.requests) == 3
        # Each of them passed its promise by its own cost alone.
        [spent] = rows("select sum(cost_usd)::float8 as usd from spending")
        assert spent["usd"] == pytest.approx(0.97 + 3 * 0.02)
        assert rows("select 1 from reservations") == []


@pytest.mark.spec("FLD-017")
async def test_a_turn_waits_for_money_that_may_come_back(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    gate = model_server.gate("first")
    model_server.play(turn({"gate": "first"}, {"text": "Cheap."}, usage=costing(0.001)))
    async with asking("budgets: {crew: {day: 1.00}}\n") as crew:
        spend(rows, 0.995)
        first = asyncio.create_task(crew.send(await crew.open(), "go"))
        await model_server.received(1)
        second = asyncio.create_task(crew.send(await crew.open(), "go"))

        async def both_run() -> bool:
            return len(rows("select 1 from turns")) == 2

        await until(both_run)
        gate.release()
        assert [names_of(events)[-1] for events in await asyncio.gather(first, second)] == ["done", "done"]


@pytest.mark.spec("FLD-017")
async def test_the_promise_of_a_process_that_died_goes_with_its_turn(
    asking: Asking, model_server: ModelServer, rows: Rows
) -> None:
    gate = model_server.gate("never")
    model_server.play(turn({"gate": "never"}, {"text": "Lost."}))
    async with asking("budgets: {crew: {day: 1.00}}\n") as crew:
        async with doomed(crew) as orchestrator:
            conversation_id = await crew.open()
            sending = crew.sending(conversation_id, "go")
            await model_server.received(1)
            assert len(rows("select 1 from reservations")) == 1
            await orchestrator.kill()
            sending.cancel()
        await crew.start("orchestrator")

        async def answered() -> bool:
            return bool(rows("select 1 from messages where role = 'assistant'"))

        await until(answered)
        gate.release()
        assert rows("select 1 from reservations") == []


async def family(store: Database, children: int, *, cap: float, spent: float) -> tuple[str, list[str]]:
    """A conversation with a cap, and conversations that are to be its children."""
    async with store.transaction() as connection:
        made = [
            await conversations.create(
                connection, agent_id="default", channel="web", title="", autonomous=True, cost_cap_usd=cap
            )
            for _ in range(children + 1)
        ]
        await conversations.charge(connection, made[0].id, cost_usd=spent, unknown_calls=0)
    return made[0].id, [child.id for child in made[1:]]


async def conversation(store: Database, conversation_id: str) -> Any:
    async with store.connection() as connection:
        found = await conversations.get(connection, conversation_id)
    assert found is not None
    return found


@pytest.mark.spec("FLD-017")
@pytest.mark.parametrize(
    ("spent", "among", "begun"),
    [(0.90, 8, 8), (0.95, 8, 5), (0.90, 1, 1), (0.995, 8, 0)],
    ids=["shared by all", "a cent at least", "all to the first", "too little for one"],
)
async def test_children_that_start_at_once_share_what_is_left(
    spent: float, among: int, begun: int, store: Database, database: ScratchDatabase
) -> None:
    other = Database(database.url)
    await other.open()
    try:
        parent, children = await family(store, 8, cap=1.00, spent=spent)

        async def start(n: int) -> Share | Refused:
            async with (store, other)[n % 2].transaction() as connection:
                # However late a child comes, it is told how many its message began.
                return await shares.give(connection, parent_id=parent, child_id=children[n], among=among)

        given = await asyncio.gather(*(start(n) for n in range(8)))
        amounts = [share.amount_usd for share in given if isinstance(share, Share)]
        refused = [share for share in given if isinstance(share, Refused)]
        assert len(amounts) >= begun if among > 1 else len(amounts) == begun
        assert all(amount is not None and amount >= shares.LEAST_USD for amount in amounts)
        assert spent + sum(amount or 0 for amount in amounts) <= 1.00 + 1e-9
        assert all(share.left_usd < shares.LEAST_USD for share in refused)
        # Each child that began makes one call of 0.05, more than it was given.
        for n, share in enumerate(given):
            if isinstance(share, Share):
                assert (await conversation(store, children[n])).cost_cap_usd == pytest.approx(
                    share.amount_usd
                )
                async with store.transaction() as connection:
                    await conversations.charge(connection, children[n], cost_usd=0.05, unknown_calls=1)
        async with store.connection() as connection:
            assert await shares.held(connection, parent) == pytest.approx(
                sum(max(0.05, amount or 0) for amount in amounts)
            )
        for _ in range(2):  # what is accounted for twice is added once
            async with store.transaction() as connection:
                for child in children:
                    await shares.settle(connection, child)
        after = await conversation(store, parent)
        assert after.spent_usd == pytest.approx(spent + 0.05 * len(amounts))
        assert after.unknown_cost_calls == len(amounts)
        assert after.spent_usd <= 1.00 + 0.05 * len(amounts) + 1e-9
    finally:
        await other.close()


@pytest.mark.spec("FLD-017")
async def test_children_of_a_parent_without_a_cap_have_none(store: Database) -> None:
    parent, [child] = await family(store, 1, cap=0, spent=3)
    async with store.transaction() as connection:
        assert await shares.give(connection, parent_id=parent, child_id=child) == Share(None)
    assert (await conversation(store, child)).cost_cap_usd == 0
    async with store.transaction() as connection:
        await conversations.charge(connection, child, cost_usd=0.25, unknown_calls=0)
        assert await conversations.delete(connection, child)
    # Also one that is deleted before its result was recorded is accounted for.
    assert (await conversation(store, parent)).spent_usd == pytest.approx(3.25)


@pytest.mark.spec("FLD-017")
async def test_a_parent_that_goes_on_accounts_for_children_that_were_cut_off(
    asking: Asking, store: Database
) -> None:
    async with asking() as crew:
        parent = await crew.open(cost_cap_usd=1)
        _, [child] = await family(store, 1, cap=0, spent=0)
        async with store.transaction() as connection:
            await shares.give(connection, parent_id=parent, child_id=child)
            await conversations.charge(connection, child, cost_usd=0.3, unknown_calls=2)
        events = await crew.send(parent, "where were we?")
        assert events[-1].done.spent_usd == pytest.approx(0.301)
        assert events[-1].done.unknown_cost_calls == 2


async def test_a_child_is_given_one_share(store: Database) -> None:
    parent, [child] = await family(store, 1, cap=1, spent=0)
    async with store.transaction() as connection:
        await shares.give(connection, parent_id=parent, child_id=child, among=2)
    with pytest.raises(psycopg.errors.UniqueViolation):
        async with store.transaction() as connection:
            await shares.give(connection, parent_id=parent, child_id=child)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        async with store.transaction() as connection:
            await shares.give(connection, parent_id=parent, child_id=str(uuid4()))

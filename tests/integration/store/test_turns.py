"""Claims: one holder at a time, the dead are told at once, and who lost its claim writes nothing."""

import asyncio
from uuid import uuid4

import pytest

from services.orchestrator.store import conversations, runs, turns
from services.orchestrator.store.instance import Instance
from services.orchestrator.store.pool import Database
from services.orchestrator.store.turns import INSTANCE_LOCK, Claim, ClaimLost
from tests.fixtures.crew import until
from tests.fixtures.postgres import ScratchDatabase


@pytest.fixture
async def store(database: ScratchDatabase):
    opened = Database(database.url)
    await opened.open()
    yield opened
    await opened.close()


async def conversation_with_run(store: Database) -> tuple[str, str]:
    run_id = str(uuid4())
    async with store.transaction() as connection:
        conversation = await conversations.create(
            connection, agent_id="default", channel="web", title="", autonomous=False, cost_cap_usd=0
        )
        await runs.create(
            connection,
            run_id=run_id,
            conversation_id=conversation.id,
            agent_id="default",
            source="chat",
            after_seq=0,
        )
    return conversation.id, run_id


async def kill(store: Database, instance: Instance) -> None:
    """End the instance, and wait for its backend, which a busy machine may let linger."""
    await instance.close()

    async def gone() -> bool:
        async with store.connection() as connection:
            cursor = await connection.execute(
                "select 1 from pg_locks where locktype = 'advisory' and objid = %s and classid = %s",
                (instance.number, INSTANCE_LOCK),
            )
            return await cursor.fetchone() is None

    await until(gone)


async def claim(store: Database, conversation_id: str, run_id: str, instance: int) -> Claim | None:
    async with store.transaction() as connection:
        return await turns.claim(connection, conversation_id, run_id, instance)


@pytest.mark.spec("TRN-036", "TRN-037")
async def test_of_many_claims_at_once_one_is_given(store: Database) -> None:
    conversation_id, run_id = await conversation_with_run(store)
    claims = await asyncio.gather(*(claim(store, conversation_id, run_id, n) for n in range(1, 11)))
    assert len([one for one in claims if one]) == 1


async def test_a_dead_owner_is_known_at_once_and_a_living_one_keeps_its_turn(store: Database) -> None:
    dying, living, heir = [await Instance.register(store) for _ in range(3)]
    lost, run_lost = await conversation_with_run(store)
    kept, run_kept = await conversation_with_run(store)
    before = await claim(store, lost, run_lost, dying.number)
    await claim(store, kept, run_kept, living.number)
    await kill(store, dying)
    async with store.transaction() as connection:
        taken = await turns.take_over(connection, heir.number)
    assert [(found.claim.conversation_id, found.stop_requested) for found in taken] == [(lost, False)]
    assert before is not None
    async with store.transaction() as connection:
        with pytest.raises(ClaimLost):
            await turns.hold(connection, before)
        await turns.hold(connection, taken[0].claim)
    await living.close()
    await heir.close()


async def test_a_hung_owner_falls_to_its_lease(store: Database) -> None:
    hung, heir = await Instance.register(store), await Instance.register(store)
    conversation_id, run_id = await conversation_with_run(store)
    await claim(store, conversation_id, run_id, hung.number)
    async with store.transaction() as connection:
        assert await turns.take_over(connection, heir.number) == []
        await connection.execute("update turns set lease_until = now() - interval '1 second'")
        assert len(await turns.take_over(connection, heir.number)) == 1
    await hung.close()
    await heir.close()


async def test_a_turn_that_its_own_process_let_go_of_is_found_when_the_lease_is_over(store: Database) -> None:
    owner = await Instance.register(store)
    conversation_id, run_id = await conversation_with_run(store)
    await claim(store, conversation_id, run_id, owner.number)
    async with store.transaction() as connection:
        await turns.renew(connection, owner.number, [])
        await connection.execute("update turns set lease_until = now() - interval '1 second'")
        assert await turns.take_over(connection, owner.number, working_on=[conversation_id]) == []
        await turns.renew(connection, owner.number, [])
        assert len(await turns.take_over(connection, owner.number)) == 1
    await owner.close()


@pytest.mark.spec("FLD-008")
async def test_a_turn_past_its_time_is_taken_from_a_living_owner(store: Database) -> None:
    living, other = await Instance.register(store), await Instance.register(store)
    conversation_id, run_id = await conversation_with_run(store)
    await claim(store, conversation_id, run_id, living.number)
    async with store.transaction() as connection:
        await connection.execute("update turns set ends_at = now() - interval '20 seconds'")
        await turns.renew(connection, living.number, [conversation_id])
        assert await turns.take_over(connection, other.number) == []
        await connection.execute("update turns set ends_at = now() - interval '31 seconds'")
        [taken] = await turns.take_over(connection, other.number)
        assert taken.overdue
    await living.close()
    await other.close()


async def test_two_heirs_share_what_a_dead_owner_left(store: Database) -> None:
    dying, *heirs = [await Instance.register(store) for _ in range(3)]
    for _ in range(6):
        conversation_id, run_id = await conversation_with_run(store)
        await claim(store, conversation_id, run_id, dying.number)
    await kill(store, dying)

    async def take(heir: Instance) -> list[str]:
        async with store.transaction() as connection:
            return [one.claim.conversation_id for one in await turns.take_over(connection, heir.number)]

    first, second = await asyncio.gather(*(take(heir) for heir in heirs))
    rest = [await take(heir) for heir in heirs]
    taken = [*first, *second, *rest[0], *rest[1]]
    assert len(taken) == len(set(taken)) == 6
    for heir in heirs:
        await heir.close()


@pytest.mark.spec("PIP-112")
@pytest.mark.parametrize(
    "statement",
    [
        "update audit.calls set tool = 'x'",
        "delete from audit.calls",
        "truncate audit.calls",
        "update audit.calls_rest set tool = 'x'",
        "delete from audit.calls_rest",
        "insert into audit.calls (at) values ('2020-01-01')",
        "select 1 from audit.calls for update",
        "drop table audit.calls",
        "alter table audit.calls add column x int",
    ],
)
async def test_the_services_cannot_change_the_audit_trail(store: Database, statement: str) -> None:
    import psycopg

    async with store.connection() as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await connection.execute(statement)

"""Conversations: what they are opened with, how they are listed, what moves and what keeps them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import grpc
import psycopg
import pytest
from crew.v1 import conversations_pb2 as pb
from crew.v1 import runs_pb2, turns_pb2

from tests.fixtures.crew import Crew, http_status_of, running_crew
from tests.fixtures.postgres import ScratchDatabase

WORK = "mode: work\n"


async def listed(crew: Crew, **wanted: Any) -> list[pb.Conversation]:
    return list((await crew.conversations.List(pb.ListConversationsRequest(**wanted))).conversations)


async def execute(crew: Crew, statement: str, *values: Any) -> None:
    async with await psycopg.AsyncConnection.connect(crew.database.owner_url) as connection:
        await connection.execute(statement, values)


@pytest.mark.spec("TRN-001", "TRN-006", "TRN-327", "GTW-053")
async def test_a_conversation_belongs_to_one_agent_and_one_channel_and_keeps_to_itself(crew: Crew) -> None:
    (crew.home / "agents" / "helper").mkdir(parents=True)
    (crew.home / "agents" / "helper" / "agent.yaml").write_text("name: Helper\n")
    await crew.end("orchestrator")
    await crew.start("orchestrator")
    mine = await crew.conversations.Create(pb.CreateConversationRequest())
    others = await crew.conversations.Create(pb.CreateConversationRequest(agent_id="helper"))
    assert [(each.agent_id, each.channel) for each in (mine, others)] == [
        ("default", "web"),
        ("helper", "web"),
    ]
    await crew.send(mine.id, "only here")
    await crew.send(others.id, "only there")
    said = {
        each.id: {message.content for message in (await crew.get(each.id)).messages}
        for each in (mine, others)
    }
    assert said == {mine.id: {"only here"}, others.id: {"only there"}}
    assert [each.id for each in await listed(crew, agent_id="default")] == [mine.id]
    assert {each.id for each in await listed(crew)} == {mine.id, others.id}
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await crew.conversations.Create(pb.CreateConversationRequest(agent_id="nobody"))
    assert http_status_of(refused.value) == (404, "NO_AGENT")
    assert len(await listed(crew)) == 2


# At any moment the days of these two zones differ.
@pytest.mark.spec("TRN-002", "TRN-003")
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
async def test_the_day_of_a_conversation_is_the_persons_and_its_times_are_utc(
    database: ScratchDatabase, zone: str
) -> None:
    async with running_crew(database, environ={"MY_AGENT_TIMEZONE": zone}) as crew:
        before = datetime.now(ZoneInfo(zone)).date()
        reply = await crew.turns.Inbound(turns_pb2.InboundRequest(text="hello"))
        after = datetime.now(ZoneInfo(zone)).date()
        async with await psycopg.AsyncConnection.connect(database.url) as connection:
            cursor = await connection.execute("select conversation_id::text, day from daily_conversations")
            [(conversation_id, day)] = await cursor.fetchall()
        assert conversation_id == reply.conversation_id
        assert day in (before, after)
        # The same day's yesterday is another conversation.
        await execute(crew, "update daily_conversations set day = day - 1")
        again = await crew.turns.Inbound(turns_pb2.InboundRequest(text="hello"))
        assert again.conversation_id != reply.conversation_id
        created = (await crew.get(conversation_id)).created_at
        assert created.endswith("Z")
        assert abs(datetime.fromisoformat(created).timestamp() - datetime.now().timestamp()) < 60


@pytest.mark.spec("TRN-009", "TRN-010", "TRN-011")
@pytest.mark.parametrize(
    ("config", "agent", "environ", "autonomous", "cap"),
    [
        ("", "", {}, False, 0.5),
        ("autonomous_default: true\ncost_cap_usd: 2\n", "", {}, True, 2.0),
        ("autonomous_default: true\n", "", {"MY_AGENT_AUTONOMOUS": "off"}, False, 0.5),
        ("", "", {"MY_AGENT_AUTONOMOUS": "yes", "MY_AGENT_COST_CAP_USD": "3"}, True, 3.0),
        ("autonomous_default: true\n", "autonomous: false\ncost_cap_usd: 0\n", {}, False, 0.0),
        ("", WORK, {}, True, 20.0),
        ("", WORK + "autonomous: false\ncost_cap_usd: 1\n", {"MY_AGENT_COST_CAP_USD": "3"}, False, 1.0),
    ],
)
async def test_a_new_conversation_takes_its_stance_and_cap_from_profile_then_settings(
    database: ScratchDatabase, config: str, agent: str, environ: dict[str, str], autonomous: bool, cap: float
) -> None:
    async with running_crew(database, config=config, agent=agent, environ=environ) as crew:
        web = await crew.conversations.Create(pb.CreateConversationRequest())
        inbound = await crew.turns.Inbound(turns_pb2.InboundRequest(text="hello"))
        for each in (web, await crew.get(inbound.conversation_id)):
            assert (each.autonomous, each.cost_cap_usd) == (autonomous, cap)
            assert list(each.skills) == list(each.auto_approve) == []
            assert (each.spent_usd, each.unknown_cost_calls) == (0, 0)
            assert not each.HasField("approval_ttl_seconds")
            assert not each.over_budget


@pytest.mark.spec("TRN-007")
async def test_a_delegated_conversation_is_in_no_list_and_readable_by_its_id(crew: Crew) -> None:
    parent, child = await crew.open(), await crew.open()
    await execute(crew, "update conversations set parent_conversation_id = %s where id = %s", parent, child)
    assert [each.id for each in await listed(crew)] == [parent]
    assert (await crew.get(child)).id == child


@pytest.mark.spec("TRN-014", "TRN-015", "GTW-052")
async def test_messages_and_edits_move_a_conversation_to_the_top_and_reading_does_not(crew: Crew) -> None:
    first, second, third = [await crew.open() for _ in range(3)]

    async def order() -> list[str]:
        return [each.id for each in await listed(crew)]

    assert await order() == [third, second, first]
    await crew.send(first, "hello")
    assert await order() == [first, third, second]

    async def patch(conversation_id: str, **changes: Any) -> None:
        request = pb.UpdateConversationRequest(id=conversation_id, **changes)
        request.update_mask.paths.extend(changes)
        await crew.conversations.Update(request)

    for changes in (
        {"title": "x"},
        {"autonomous": True},
        {"cost_cap_usd": 1.0},
        {"skills": ["a"]},
        {"auto_approve": ["workspace_write"]},
    ):
        await patch(second, **changes)
        assert (await order())[0] == second, changes
        await patch(third, **changes)
        assert (await order())[0] == third, changes
    await crew.get(first)
    await crew.get(second)
    assert await order() == [third, second, first]


@pytest.mark.spec("TRN-015")
async def test_the_book_keeping_of_money_does_not_move_a_conversation(crew: Crew) -> None:
    first, second = await crew.open(), await crew.open()
    await execute(crew, "update conversations set spent_usd = 1, title = 'by a model' where id = %s", first)
    assert [each.id for each in await listed(crew)] == [second, first]


@pytest.mark.spec("TRN-012", "TRN-209")
async def test_a_conversation_keeps_its_own_time_for_decisions(crew: Crew) -> None:
    conversation_id = await crew.open()
    await execute(crew, "update conversations set approval_ttl_seconds = 7200 where id = %s", conversation_id)
    await crew.end("orchestrator")
    await crew.start("orchestrator")
    for name in ("a", "b"):
        write = json.dumps({"path": name, "content": "1"})
        await crew.send(conversation_id, f"/tool workspace_write {write}")
        approval = (await crew.get(conversation_id)).pending_approval
        begin, end = (datetime.fromisoformat(at) for at in (approval.created_at, approval.expires_at))
        assert (end - begin).total_seconds() == pytest.approx(7200, abs=1)
        await crew.decide(approval.id, approve=False)


@pytest.mark.spec("TRN-017", "GTW-057")
async def test_deleting_takes_everything_of_it_and_nothing_of_others(crew: Crew) -> None:
    gone, kept = await crew.open(), await crew.open()
    for conversation_id in (gone, kept):
        await crew.send(conversation_id, '/tool workspace_write {"path": "a.txt", "content": "1"}')
    async with await psycopg.AsyncConnection.connect(crew.database.owner_url) as connection:
        for conversation_id in (gone, kept):
            await connection.execute(
                "insert into queued_messages (conversation_id, kind, text, source) "
                "values (%s, 'follow_up', 'waits', 'chat')",
                (conversation_id,),
            )
    await crew.conversations.Delete(pb.DeleteConversationRequest(id=gone))
    async with await psycopg.AsyncConnection.connect(crew.database.superuser_url) as connection:
        for table in ("messages", "queued_messages", "approvals"):
            cursor = await connection.execute(f"select distinct conversation_id::text from {table}")
            assert await cursor.fetchall() == [(kept,)], table
        cursor = await connection.execute(
            "select conversation_id::text, status, summary from runs order by n"
        )
        assert await cursor.fetchall() == [(gone, "error", "interrupted"), (kept, "awaiting_approval", "")]
    assert (await crew.get(kept)).HasField("pending_approval")
    for unknown in (gone, "nonsense"):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await crew.conversations.Delete(pb.DeleteConversationRequest(id=unknown))
        assert http_status_of(refused.value) == (404, "NO_CONVERSATION")
    run = (await crew.runs.List(runs_pb2.RunsRequest(conversation_id=gone))).runs[0]
    assert run.HasField("finished_at")


@pytest.mark.spec("TRN-021", "TRN-022", "GTW-056")
async def test_an_edit_changes_what_it_names_and_refuses_the_whole_of_a_bad_one(crew: Crew) -> None:
    conversation_id = await crew.open(title="A", autonomous=True, cost_cap_usd=2, auto_approve=["x", "y"])
    before = await crew.get(conversation_id)
    bad: list[dict[str, Any]] = [
        {"title": "B", "cost_cap_usd": -0.01},
        {"title": "B", "cost_cap_usd": float("nan")},
        {"title": "B", "cost_cap_usd": 1_000_001.0},
        {"autonomous": False, "title": " \n"},
        {"autonomous": False, "title": "x" * 201},
        {"title": "B", "auto_approve": [""]},
        {"title": "B", "auto_approve": [f"t{n}" for n in range(201)]},
    ]
    for changes in bad:
        request = pb.UpdateConversationRequest(id=conversation_id, **changes)
        request.update_mask.paths.extend(changes)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await crew.conversations.Update(request)
        assert http_status_of(refused.value)[0] == 422, changes
        assert await crew.get(conversation_id) == before, changes
    request = pb.UpdateConversationRequest(id=conversation_id, auto_approve=["y"], cost_cap_usd=0)
    request.update_mask.paths.extend(["auto_approve", "cost_cap_usd"])
    changed = await crew.conversations.Update(request)
    assert (list(changed.auto_approve), changed.cost_cap_usd) == (["y"], 0)
    assert (changed.title, changed.autonomous) == ("A", True)

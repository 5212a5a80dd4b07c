"""A conversation that goes on differently from a place in another one."""

from __future__ import annotations

import json

import grpc
import psycopg
import pytest
from crew.v1 import conversations_pb2

from tests.fixtures.crew import Crew, http_status_of, running_crew
from tests.fixtures.model_server import ModelServer, call, text
from tests.fixtures.postgres import ScratchDatabase

WRITE = '/tool workspace_write {"path": "a.txt", "content": "1"}'


async def fork(crew: Crew, conversation_id: str, message_id: int) -> conversations_pb2.ForkConversationReply:
    return await crew.conversations.Fork(
        conversations_pb2.ForkConversationRequest(id=conversation_id, before_message_id=message_id)
    )


async def refusal(crew: Crew, conversation_id: str, message_id: int) -> tuple[int, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await fork(crew, conversation_id, message_id)
    return http_status_of(refused.value)


@pytest.mark.spec("TRN-023", "TRN-026", "TRN-027", "TRN-028", "TRN-032", "GTW-059", "GTW-060")
async def test_a_fork_holds_what_came_before_and_costs_nothing(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as crew:
        model_server.play(
            call("workspace_list", {"path": "."}), text("Nothing there."), text("Blue."), text("Red.")
        )
        source_id = await crew.open(autonomous=True, auto_approve=["workspace_write"])
        await crew.send(source_id, "what is here?")
        await crew.send(source_id, "what colour?")
        source = await crew.get(source_id)
        cut = next(message for message in source.messages if message.content == "what colour?")
        reply = await fork(crew, source_id, cut.id)
        made = await crew.get(reply.conversation.id)
        assert reply.text == "what colour?"
        assert [message.seq for message in made.messages] == [1, 2, 3, 4]
        copied = ("role", "content", "tool_calls", "tool_call_id", "name", "model", "created_at", "context")
        for before, after in zip(source.messages, made.messages, strict=False):
            assert [getattr(before, name) for name in copied] == [getattr(after, name) for name in copied]
            for name in ("provider", "cost_usd", "prompt_tokens", "completion_tokens"):
                assert not after.HasField(name)
        assert source.spent_usd > 0
        assert (made.spent_usd, made.unknown_cost_calls, list(made.auto_approve)) == (0, 0, [])
        assert not made.autonomous
        assert made.forked_from == source_id
        assert await crew.get(source_id) == source
        await crew.send(made.id, "and now?")
        sent = model_server.requests[-1].messages
        assert [message["role"] for message in sent[1:]] == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.spec("TRN-024", "GTW-059")
async def test_a_fork_starts_at_a_message_of_the_person_in_that_conversation(crew: Crew) -> None:
    one, other = await crew.open(), await crew.open()
    await crew.send(one, "first")
    await crew.send(other, "second")
    user, assistant = (await crew.get(one)).messages
    elsewhere = (await crew.get(other)).messages[0]
    before = await crew.conversations.List(conversations_pb2.ListConversationsRequest())
    assert await refusal(crew, one, assistant.id) == (400, "NOT_A_PERSONS_MESSAGE")
    assert await refusal(crew, one, elsewhere.id) == (404, "NO_MESSAGE")
    assert await refusal(crew, one, 2**62) == (404, "NO_MESSAGE")
    assert await refusal(crew, "00000000-0000-0000-0000-000000000000", user.id) == (404, "NO_CONVERSATION")
    assert await refusal(crew, one, 0) == (422, "BAD_MESSAGE_ID")
    assert await refusal(crew, one, -1) == (422, "BAD_MESSAGE_ID")
    assert await crew.conversations.List(conversations_pb2.ListConversationsRequest()) == before


@pytest.mark.spec("TRN-025")
async def test_a_delegated_conversation_is_not_forked(crew: Crew) -> None:
    parent, child = await crew.open(), await crew.open()
    await crew.send(child, "task")
    async with await psycopg.AsyncConnection.connect(crew.database.url) as connection:
        await connection.execute(
            "update conversations set parent_conversation_id = %s where id = %s", (parent, child)
        )
    assert await refusal(crew, child, (await crew.get(child)).messages[0].id) == (400, "DELEGATED")


@pytest.mark.spec("TRN-030")
async def test_the_title_gains_one_suffix_once(crew: Crew) -> None:
    source = await crew.open()
    await crew.send(source, "Plan the garden")
    await crew.send(source, "And the fence")
    first = await fork(crew, source, (await crew.get(source)).messages[2].id)
    assert first.conversation.title == "Plan the garden (fork)"
    again = await fork(crew, first.conversation.id, first.conversation.messages[0].id)
    assert again.conversation.title == "Plan the garden (fork)"
    long = await crew.open(title="x" * 200)
    await crew.send(long, "hello")
    cut = await fork(crew, long, (await crew.get(long)).messages[0].id)
    assert cut.conversation.title == f"{'x' * 193} (fork)"


@pytest.mark.spec("TRN-030")
async def test_the_suffix_is_in_the_crews_language(database: ScratchDatabase) -> None:
    async with running_crew(database, environ={"MY_AGENT_LANGUAGE": "vi"}) as crew:
        source = await crew.open()
        await crew.send(source, "Trồng cây")
        reply = await fork(crew, source, (await crew.get(source)).messages[0].id)
        assert reply.conversation.title == "Trồng cây (nhánh)"


@pytest.mark.spec("TRN-029", "TRN-202")
async def test_an_open_call_in_the_copied_part_is_closed_and_never_runs(crew: Crew) -> None:
    source = await crew.open()
    await crew.send(source, WRITE)
    with psycopg.connect(crew.database.url) as connection:
        # No turn leaves a log like this one; an older program's database may hold it.
        connection.execute(
            """
            with said as (update conversations set last_seq = 3 where id = %(id)s returning id)
            insert into messages (conversation_id, seq, role, author, content)
            select id, 3, 'user', 'person', 'go on' from said
            """,
            {"id": source},
        )
    cut = (await crew.get(source)).messages[2]
    made = (await fork(crew, source, cut.id)).conversation
    assert [message.role for message in made.messages] == ["user", "assistant", "tool"]
    asking = made.messages[1].tool_calls[0]
    assert (made.messages[2].tool_call_id, made.messages[2].is_error) == (asking.id, True)
    assert json.loads(asking.arguments) == {"path": "a.txt", "content": "1"}
    assert not made.HasField("pending_approval")
    await crew.send(made.id, "hello")
    assert not (crew.workspace / "a.txt").exists()
    assert (await crew.get(source)).HasField("pending_approval")


@pytest.mark.spec("TRN-031")
async def test_a_fork_that_fails_on_its_way_leaves_nothing(crew: Crew) -> None:
    source = await crew.open()
    await crew.send(source, "first")
    await crew.send(source, "second")
    cut = (await crew.get(source)).messages[2]
    with psycopg.connect(crew.database.owner_url, autocommit=True) as connection:
        connection.execute("alter table messages add constraint no_copies check (seq <> 2) not valid")
    with pytest.raises(grpc.aio.AioRpcError):
        await fork(crew, source, cut.id)
    found = await crew.conversations.List(conversations_pb2.ListConversationsRequest())
    assert [conversation.id for conversation in found.conversations] == [source]


@pytest.mark.spec("TRN-033")
async def test_deleting_the_source_leaves_its_forks(crew: Crew) -> None:
    source = await crew.open()
    await crew.send(source, "first")
    await crew.send(source, "second")
    made = (await fork(crew, source, (await crew.get(source)).messages[2].id)).conversation
    await crew.conversations.Delete(conversations_pb2.DeleteConversationRequest(id=source))
    left = await crew.get(made.id)
    assert not left.HasField("forked_from")
    assert left.messages == made.messages

"""Finding what was said, over all conversations."""

from __future__ import annotations

import unicodedata
from typing import Any

import grpc
import psycopg
import pytest
from crew.v1 import conversations_pb2, messages_pb2, messages_pb2_grpc

from tests.fixtures.crew import Crew, http_status_of


async def search(crew: Crew, q: str, **fields: Any) -> list[messages_pb2.MessageHit]:
    stub = crew.stub(messages_pb2_grpc.MessagesStub)
    return list((await stub.Search(messages_pb2.SearchMessagesRequest(q=q, **fields))).hits)


async def said(crew: Crew, *texts: str) -> str:
    """A conversation in which the person said this; the agent repeats it each time."""
    conversation_id = await crew.open()
    for text in texts:
        await crew.send(conversation_id, text)
    return conversation_id


@pytest.mark.spec("TRN-335", "TRN-338", "TRN-343", "GTW-061")
async def test_what_a_person_and_an_agent_said_is_found_and_goes_with_its_conversation(crew: Crew) -> None:
    conversation_id = await said(crew, "Remember the marmalade", '/tool workspace_list {"path": "."}')
    hits = await search(crew, "marmalade")
    stored = await crew.get(conversation_id)
    assert [hit.message_id for hit in hits] == [stored.messages[1].id, stored.messages[0].id]
    assert [(hit.role, hit.snippet) for hit in hits] == [
        ("assistant", stored.messages[1].content),
        ("user", "Remember the marmalade"),
    ]
    assert {(hit.conversation_id, hit.title, hit.agent_id) for hit in hits} == {
        (conversation_id, stored.title, "default")
    }
    assert hits[1].created_at == stored.messages[0].created_at
    with psycopg.connect(crew.database.url) as connection:
        connection.execute("update messages set content = 'quince' where role = 'tool'")
    assert not await search(crew, "quince")
    await crew.conversations.Delete(conversations_pb2.DeleteConversationRequest(id=conversation_id))
    assert not await search(crew, "marmalade")


@pytest.mark.spec("TRN-336", "GTW-061")
async def test_one_agent_an_unknown_one_and_nothing_to_search_for(crew: Crew) -> None:
    conversation_id = await said(crew, "marmalade")
    other = await said(crew, "marmalade")
    with psycopg.connect(crew.database.url) as connection:
        connection.execute("update conversations set agent_id = 'other' where id = %s", (other,))
    assert {hit.conversation_id for hit in await search(crew, "marmalade")} == {conversation_id, other}
    hits = await search(crew, "marmalade", agent_id="other")
    assert {hit.conversation_id for hit in hits} == {other}
    assert not await search(crew, "marmalade", agent_id="nobody")
    for nothing in ("", "  ", "\u0301"):
        assert not await search(crew, nothing)


@pytest.mark.spec("TRN-337", "GTW-061")
@pytest.mark.parametrize("limit", [0, -1, 51])
async def test_a_limit_outside_1_to_50_is_refused(crew: Crew, limit: int) -> None:
    for q in ("x", ""):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await search(crew, q, limit=limit)
        assert http_status_of(refused.value) == (422, "BAD_LIMIT")


@pytest.mark.spec("TRN-339")
async def test_case_accents_and_forms_make_no_difference_both_ways(crew: Crew) -> None:
    words = "Hôm nay ĐẶT HÀNG ở chợ"
    await said(crew, words)
    await said(crew, unicodedata.normalize("NFD", "Đừng đặt hàng nữa"))
    await said(crew, "dat hang khong dau")
    await said(crew, "ガギグ")
    for q in ("dat hang", "đặt hàng", "ĐẶT HÀNG", "Dat Hàng", unicodedata.normalize("NFD", "đặt hàng")):
        assert len({hit.conversation_id for hit in await search(crew, q)}) == 3, q
    assert await search(crew, "ガ")
    assert await search(crew, unicodedata.normalize("NFD", "ガ"))
    assert not await search(crew, "カ")


@pytest.mark.spec("TRN-341")
@pytest.mark.parametrize(
    "q", ['"', "'", "AND", "a OR b", "NOT", "(", "*", "%", "_", "\\", "x:y", "-x", "a & b | !c", "<->", "\0"]
)
async def test_operators_are_plain_text(crew: Crew, q: str) -> None:
    await said(crew, "else")
    assert not await search(crew, q)
    await said(crew, f"before {q} after")
    assert await search(crew, q)


@pytest.mark.spec("TRN-342")
async def test_a_conversation_gives_three_hits_and_a_text_one(crew: Crew) -> None:
    talkative = await said(crew, "pear one", "pear two", "pear three", "pear four")
    hits = await search(crew, "pear")
    assert [hit.conversation_id for hit in hits] == [talkative] * 3
    assert len({hit.message_id for hit in hits}) == 3
    source = await said(crew, "a plum", "and more")
    cut = (await crew.get(source)).messages[2]
    fork = await crew.conversations.Fork(
        conversations_pb2.ForkConversationRequest(id=source, before_message_id=cut.id)
    )
    hits = await search(crew, "plum")
    assert {hit.conversation_id for hit in hits} == {fork.conversation.id}
    with psycopg.connect(crew.database.url) as connection:
        connection.execute("update conversations set agent_id = 'other' where id = %s", (source,))
    assert {hit.conversation_id for hit in await search(crew, "plum")} == {source, fork.conversation.id}


@pytest.mark.spec("TRN-337", "TRN-342")
async def test_the_limit_counts_hits(crew: Crew) -> None:
    for n in range(4):
        await said(crew, f"cherry {n}")
    assert len(await search(crew, "cherry", limit=3)) == 3


async def test_a_query_that_is_no_query_is_refused(crew: Crew) -> None:
    for q in ("x" * 501, " ".join(f"w{n}" for n in range(17))):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await search(crew, q)
        assert http_status_of(refused.value) == (422, "QUERY_TOO_LONG")

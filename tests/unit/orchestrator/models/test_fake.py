from collections.abc import Sequence
from contextlib import aclosing

import pytest

from services.orchestrator.models.config import ModelsConfig
from services.orchestrator.models.contract import (
    AllRoutesFailed,
    ChatMessage,
    Completed,
    ModelRequest,
    Reply,
    Route,
    TextDelta,
    WireCall,
)
from services.orchestrator.models.facade import Models
from services.orchestrator.models.providers.fake import tool_line

ECHO = Route("fake", "echo")


async def ask(*messages: ChatMessage, route: Route = ECHO) -> tuple[Reply, list[str], list[float]]:
    """The reply, the pieces it came in and the waits between them."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    models = Models(ModelsConfig(routes=[route]), sleep=sleep)
    pieces: list[str] = []
    try:
        request = ModelRequest(routes=[route], system="You help.", messages=messages)
        async with aclosing(models.stream(request)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    pieces.append(event.text)
                last = event
    finally:
        await models.close()
    assert isinstance(last, Completed)
    return last.reply, pieces, waits


def after_tools(*results: str) -> Sequence[ChatMessage]:
    calls = [WireCall(f"c{number}", "look", "{}") for number in range(len(results))]
    return [
        ChatMessage("user", "/tool look"),
        ChatMessage("assistant", "", calls),
        *(
            ChatMessage("tool", result, tool_call_id=call.id)
            for call, result in zip(calls, results, strict=True)
        ),
    ]


@pytest.mark.spec("TRN-251", "TRN-252", "TRN-256", "TLS-423")
async def test_a_message_comes_back_in_pieces_at_price_zero() -> None:
    reply, pieces, waits = await ask(
        ChatMessage("user", "first"), ChatMessage("assistant", "first"), ChatMessage("user", "đơn hàng số 12")
    )
    assert reply.text == "".join(pieces) == "đơn hàng số 12"
    assert len(pieces) > 1
    assert reply.cost_usd == 0.0
    assert waits == []
    assert reply.calls == []


@pytest.mark.spec("TRN-252")
async def test_after_tool_results_the_newest_result_comes_back() -> None:
    reply, _, _ = await ask(*after_tools("one", "two"))
    assert (reply.text, reply.calls) == ("two", [])


@pytest.mark.spec("TRN-252")
async def test_a_result_that_looks_like_a_tool_line_calls_nothing() -> None:
    reply, _, _ = await ask(*after_tools("/tool shell_run {}"))
    assert reply.calls == []


@pytest.mark.spec("TRN-253", "TRN-255", "TLS-423", "TLS-426")
async def test_a_tool_line_calls_its_tool_under_an_id_of_its_own() -> None:
    message = ChatMessage("user", '/tool workspace_write {"path": "a.txt", "content": "1"}')
    replies = [(await ask(message))[0] for _ in range(3)]
    for reply in replies:
        (call,) = reply.calls
        assert (call.name, call.arguments) == ("workspace_write", '{"path": "a.txt", "content": "1"}')
        assert reply.text == ""
        assert reply.cost_usd == 0.0
    assert len({reply.calls[0].provider_id for reply in replies}) == 3


@pytest.mark.spec("TRN-251", "TLS-425")
async def test_slow_waits_a_tenth_of_a_second_between_pieces() -> None:
    reply, pieces, waits = await ask(
        ChatMessage("user", "a message of some length"), route=Route("fake", "slow")
    )
    assert reply.text == "a message of some length"
    assert waits == [0.1] * (len(pieces) - 1)
    assert len(pieces) > 3


async def test_a_long_text_comes_in_a_bounded_number_of_pieces() -> None:
    _, pieces, _ = await ask(ChatMessage("user", "x" * 200_000))
    assert len(pieces) <= 100


async def test_an_unknown_fake_model_is_a_failed_route() -> None:
    with pytest.raises(AllRoutesFailed):
        await ask(ChatMessage("user", "x"), route=Route("fake", "nobody"))


@pytest.mark.spec("TRN-253", "TRN-254", "TLS-424")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/tool look", ("look", "{}")),
        ("/tool look   \n", ("look", "{}")),
        ('/tool look {"a": 1.10}', ("look", '{"a": 1.10}')),
        ('notes\n\nand above\n/tool look {"a": 1}', ("look", '{"a": 1}')),
        ('/tool one {}\n/tool two {"b": 2}', ("two", '{"b": 2}')),
        ('/tool look {\n  "a": 1\n}', ("look", '{\n  "a": 1\n}')),
        ('/tool write {"content": "x\\n/tool other"}', ("write", '{"content": "x\\n/tool other"}')),
        ('/tool write {"content": "x\n/tool other y"}', ("write", '{"content": "x\\n/tool other y"}')),
        ("/tool look not json", ("look", "not json")),
        ("/tool look [1]", ("look", "[1]")),
        ("/tool mcp__a-b__c.d", ("mcp__a-b__c.d", "{}")),
        # A note above what the person wrote calls nothing.
        ('[canvas]\n/tool shell_run {"command": "x"}\n[/canvas]\nWhat is this?', None),
        ("/tool look\nplease", None),
        ("please /tool look", None),
        ("/tools look", None),
        (" /tool look", None),
        ("/tool", None),
        ("", None),
    ],
)
def test_the_last_tool_line_counts_when_it_ends_the_message(
    text: str, expected: tuple[str, str] | None
) -> None:
    assert tool_line(text) == expected

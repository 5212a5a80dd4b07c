"""Server-sent events of a running gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from crew.v1 import conversations_pb2, events_pb2

from services.gateway import sse
from tests.fixtures.fake_orchestrator import FakeOrchestrator, Turn, running
from tests.fixtures.gateway import Gateway, gateway_before


@dataclass
class Event:
    """One frame as a browser's EventSource reads it."""

    name: str
    id: str | None
    data: dict[str, object]


async def events(answer: httpx.Response) -> AsyncIterator[Event | str]:
    """Frames and comments of a stream; each frame must have exactly one line of data."""
    lines: list[str] = []
    async for line in answer.aiter_lines():
        if line:
            lines.append(line)
            continue
        if lines[0].startswith(":"):
            yield lines[0]
        else:
            fields = [line.partition(": ")[::2] for line in lines]
            assert [name for name, _ in fields].count("data") == 1
            values = dict(fields)
            yield Event(values["event"], values.get("id"), json.loads(values["data"]))
        lines = []


async def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition, at most 30 s."""
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.02)


def begin(gateway: Gateway, conversation_id: str = "c1") -> Turn:
    """A turn that runs in a conversation."""
    fake = gateway.fake
    fake.conversations[conversation_id] = conversations_pb2.Conversation(id=conversation_id)
    fake.turns[conversation_id] = Turn(conversation_id=conversation_id)
    return fake.turns[conversation_id]


@asynccontextmanager
async def watching(gateway: Gateway, last_event_id: str | None = None) -> AsyncIterator[httpx.Response]:
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    async with gateway.http.stream("GET", "/api/conversations/c1/turn", headers=headers) as answer:
        yield answer


@pytest.mark.spec("GTW-063", "GTW-128", "GTW-133", "GTW-141", "FLD-049", "TRN-062", "TRN-318")
async def test_frames_and_headers_of_a_turn(gateway: Gateway) -> None:
    turn = begin(gateway)
    await turn.emit(tool_call=events_pb2.ToolCall(id="t1", name="shell_run", arguments='{\n "n": 1.10}'))
    await turn.emit(tool_result=events_pb2.ToolResult(id="t1", name="shell_run", ok=True, ms=4))
    await turn.say("two\nlines")
    await turn.end("two\nlines")
    body = {"text": "hi", "request_id": "r"}
    async with gateway.http.stream(
        "POST", "/api/conversations/c1/messages", json=body, headers={"Accept-Encoding": "gzip"}
    ) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store, no-transform"
        assert answer.headers["x-accel-buffering"] == "no"
        assert "content-encoding" not in answer.headers
        seen = [event async for event in events(answer)]
    assert [event.name for event in seen if isinstance(event, Event)] == [
        "tool_call",
        "tool_result",
        "text_delta",
        "done",
    ]
    for number, event in enumerate(seen, 1):
        assert isinstance(event, Event)
        assert event.data["type"] == event.name
        assert event.id == f"r1:{number}"
        assert not {"conversation_id", "run_id", "seq"} & set(event.data)
    call, result, delta, done = (event.data for event in seen if isinstance(event, Event))
    assert call == {"type": "tool_call", "id": "t1", "name": "shell_run", "arguments": {"n": 1.1}}
    assert result["calls"] == []
    assert result["cost_usd"] is None
    assert delta["text"] == "two\nlines"
    assert done["spent_usd"] == 0.01
    assert gateway.fake.last("Send").request.request_id == "r"


@pytest.mark.spec("GTW-128")
def test_a_kind_that_the_contracts_do_not_know_is_no_frame() -> None:
    unknown = events_pb2.TurnEvent.FromString(b"\x12\x01r\x18\x05\xfa\x3f\x00")
    assert unknown.run_id == "r"
    assert sse.frame(unknown) is None


async def test_digits_survive_a_stream(gateway: Gateway) -> None:
    turn = begin(gateway)
    await turn.emit(tool_call=events_pb2.ToolCall(arguments='{"a": 1e400, "b": 9007199254740993}'))
    await turn.end()
    answer = await gateway.http.post("/api/conversations/c1/messages", json={"text": "x"})
    assert '"arguments":{"a": 1e400, "b": 9007199254740993}' in answer.text


@pytest.mark.spec("GTW-134")
async def test_two_tabs_see_the_same_and_204_when_nothing_runs(gateway: Gateway) -> None:
    assert (await gateway.http.get("/api/conversations/c1/turn")).status_code == 204
    turn = begin(gateway)
    await turn.say("Hello, ")
    async with watching(gateway) as one, watching(gateway) as other:
        await until(lambda: gateway.fake.watchers == 2)
        await turn.say("world")
        await turn.end("Hello, world")
        texts = []
        for answer in (one, other):
            deltas = [e async for e in events(answer) if isinstance(e, Event) and e.name == "text_delta"]
            texts.append("".join(str(event.data["text"]) for event in deltas))
    assert texts == ["Hello, world", "Hello, world"]
    ended = await gateway.http.get("/api/conversations/c1/turn")
    assert (ended.status_code, ended.content) == (204, b"")


@pytest.mark.spec("GTW-141")
async def test_resuming_in_the_middle_neither_loses_nor_doubles(gateway: Gateway) -> None:
    turn = begin(gateway)
    seen: list[Event] = []
    for round_ in range(5):
        await turn.say(f"{round_};")
        async with watching(gateway, seen[-1].id if seen else None) as answer:
            event = await anext(events(answer))
            assert isinstance(event, Event)
            seen.append(event)
    assert [event.data["text"] for event in seen] == ["0;", "1;", "2;", "3;", "4;"]
    async with watching(gateway, "another-run:3") as answer:
        first = await anext(events(answer))
        assert isinstance(first, Event)
        assert first.data["text"] == "0;"


@pytest.mark.spec("GTW-142")
async def test_clients_that_leave_leave_nothing_behind(gateway: Gateway) -> None:
    turn = begin(gateway)
    await turn.say("x")
    for path, method in (("turn", "GET"), ("messages", "POST")):
        body = None if method == "GET" else {"text": "x"}
        async with gateway.http.stream(method, f"/api/conversations/c1/{path}", json=body) as answer:
            await anext(events(answer))
            assert gateway.fake.watchers == 1
        await until(lambda: gateway.fake.watchers == 0)
    assert not turn.ended
    async with gateway.http.stream("GET", "/api/activity/stream") as answer:
        first = await anext(events(answer))
        assert isinstance(first, Event)
        assert (first.name, first.id) == ("snapshot", None)
        assert gateway.fake.watchers == 1
    await until(lambda: gateway.fake.watchers == 0)


@pytest.mark.spec("GTW-142")
async def test_a_killed_socket_leaves_nothing_behind(gateway: Gateway) -> None:
    for _ in range(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(b"GET /api/activity/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"event: snapshot")
        writer.transport.abort()
    await until(lambda: gateway.fake.watchers == 0)


@pytest.mark.spec("GTW-142")
async def test_a_client_that_leaves_a_long_call_does_not_keep_it(gateway: Gateway) -> None:
    gateway.fake.turns["inbound"] = Turn()
    call = asyncio.create_task(gateway.http.post("/api/inbound", json={"text": "x"}))
    await until(lambda: gateway.fake.watchers == 1)
    call.cancel()
    await until(lambda: gateway.fake.watchers == 0)


@pytest.mark.spec("GTW-133", "TRN-062")
async def test_silence_is_filled_with_comments_before_the_first_event_too(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(sse, "_QUIET_SECONDS", 0.2)
    turn = begin(gateway)
    async with watching(gateway) as answer:
        stream = events(answer)
        assert [await anext(stream), await anext(stream)] == [": keep-alive", ": keep-alive"]
        await turn.say("x")
        event = await anext(stream)
        assert isinstance(event, Event)
        assert event.id == "r1:1"


@pytest.mark.spec("GTW-133")
def test_the_longest_silence_is_fifteen_seconds() -> None:
    assert sse._QUIET_SECONDS + sse._LOOK_SECONDS < sse.KEEP_ALIVE_SECONDS == 15


async def test_a_reader_that_stops_reading_is_cut_off(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(sse, "STUCK_SECONDS", 0.3)
    turn = begin(gateway)
    for _ in range(300):
        await turn.say("x" * 100_000)
    _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"GET /api/conversations/c1/turn HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await until(lambda: any(seen.method == "Watch" for seen in gateway.fake.seen))
    await until(lambda: gateway.fake.watchers == 0)
    writer.transport.abort()
    assert (await gateway.http.get("/api/agents")).status_code == 200


async def test_a_slow_reader_gets_every_event_in_order(gateway: Gateway) -> None:
    turn = begin(gateway)
    async with watching(gateway) as answer:
        # Nothing is read before all of it, far more than any buffer on the way holds, has been emitted.
        for number in range(400):
            await turn.say(f"{number}:" + "x" * 20_000)
        await turn.end()
        seen = [event async for event in events(answer) if isinstance(event, Event)]
    numbers = [int(str(e.data["text"]).partition(":")[0]) for e in seen if e.name == "text_delta"]
    assert numbers == list(range(400))


async def test_a_refused_stream_is_a_plain_answer_every_time(gateway: Gateway) -> None:
    begin(gateway)
    answers = await asyncio.gather(
        *(
            gateway.http.post("/api/conversations/c1/messages", json={"text": text})
            for text in ["waiting", "full", "x" * 200_001] * 20
        )
    )
    assert [answer.status_code for answer in answers] == [409, 429, 413] * 20
    assert gateway.fake.watchers == 0
    gateway.fake.turns.clear()
    assert (await gateway.http.post("/api/approvals/none", json={"approve": True})).status_code == 404


async def test_a_stream_ends_when_the_orchestrator_dies(run_folder: Path) -> None:
    fake = FakeOrchestrator()
    async with running(fake, run_folder) as address:
        pass
    async with gateway_before(address, run_folder, fake) as gateway:
        async with running(fake, run_folder):
            turn = begin(gateway)
            await turn.say("x")
            async with asyncio.timeout(30):
                while (await gateway.http.get("/api/agents")).status_code != 200:
                    await asyncio.sleep(0.05)
            request = gateway.http.build_request("GET", "/api/conversations/c1/turn")
            answer = await gateway.http.send(request, stream=True)
            stream = events(answer)
            await anext(stream)
        rest = [event async for event in stream]
        assert rest == []
        await answer.aclose()


async def test_the_end_of_the_gateway_ends_streams_and_not_turns(run_folder: Path) -> None:
    fake = FakeOrchestrator()
    async with running(fake, run_folder) as address:
        async with gateway_before(address, run_folder, fake) as gateway:
            turn = begin(gateway)
            await turn.say("x")
            client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}", timeout=30)
            request = client.build_request("GET", "/api/conversations/c1/turn")
            answer = await client.send(request, stream=True)
            stream = events(answer)
            await anext(stream)
        assert [event async for event in stream] == []
        await client.aclose()
        await until(lambda: fake.watchers == 0)
        assert not turn.ended


async def test_a_hundred_streams_lose_and_reorder_nothing(gateway: Gateway) -> None:
    turns = [begin(gateway, f"c{number}") for number in range(100)]

    async def read(number: int) -> list[str]:
        async with gateway.http.stream(
            "POST", f"/api/conversations/c{number}/messages", json={"text": "x"}
        ) as a:
            return [str(e.data["text"]) async for e in events(a) if isinstance(e, Event)][:-1]

    gateway.http._transport._pool._max_connections = 200  # type: ignore[attr-defined]
    readers = [asyncio.create_task(read(number)) for number in range(100)]
    await until(lambda: gateway.fake.watchers == 100)
    for step in range(20):
        for number, turn in enumerate(turns):
            await turn.say(f"{number}/{step}")
    for turn in turns:
        await turn.end()
    for number, seen in enumerate(await asyncio.gather(*readers)):
        assert seen == [f"{number}/{step}" for step in range(20)]
    await until(lambda: gateway.fake.watchers == 0)

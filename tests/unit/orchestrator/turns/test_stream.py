import asyncio

import pytest
from crew.v1 import events_pb2

from services.common.errors import LimitReached
from services.orchestrator.turns.stream import WAITING_LIMIT, Streams, TurnStream


def delta(text: str) -> events_pb2.TurnEvent:
    return events_pb2.TurnEvent(text_delta=events_pb2.TextDelta(text=text))


def done(text: str = "") -> events_pb2.TurnEvent:
    return events_pb2.TurnEvent(done=events_pb2.Done(text=text))


def call(name: str) -> events_pb2.TurnEvent:
    return events_pb2.TurnEvent(tool_call=events_pb2.ToolCall(id=name, name=name, arguments="{}"))


async def read(stream: TurnStream, **options: object) -> list[events_pb2.TurnEvent]:
    return [event async for event in stream.events(**options)]  # type: ignore[arg-type]


def text_of(events: list[events_pb2.TurnEvent]) -> str:
    return "".join(event.text_delta.text for event in events)


@pytest.mark.spec("TRN-060", "GTW-134")
async def test_a_late_watcher_gets_what_was_and_what_comes_with_nothing_lost_or_doubled() -> None:
    stream = TurnStream("c", "r")
    for piece in ("one ", "two ", "three "):
        stream.publish(delta(piece))
    reading = asyncio.create_task(read(stream))
    await asyncio.sleep(0)
    for piece in ("four ", "five"):
        stream.publish(delta(piece))
        await asyncio.sleep(0)
    stream.publish(done("x"))
    events = await reading
    assert text_of(events) == "one two three four five"
    assert events[0].text_delta.text == "one two three "
    assert events[-1].WhichOneof("event") == "done"


@pytest.mark.spec("GTW-141")
@pytest.mark.parametrize("seen", [0, 1, 3, 4, 5, 6])
async def test_a_watcher_that_comes_back_goes_on_behind_the_last_event_it_saw(seen: int) -> None:
    stream = TurnStream("c", "r")
    pieces = ["a", "b", "c", "d", "e"]
    for piece in pieces:
        stream.publish(delta(piece))
    stream.publish(done())
    events = await read(stream, after=seen)
    assert "".join(pieces[:seen]) + text_of(events) == "abcde"
    assert [event.seq for event in events] == sorted({event.seq for event in events})


@pytest.mark.spec("TRN-321")
async def test_nothing_follows_the_last_event() -> None:
    stream = TurnStream("c", "r")
    stream.publish(done())
    stream.publish(delta("late"))
    assert [event.WhichOneof("event") for event in await read(stream)] == ["done"]
    assert stream.concluded


async def test_an_abandoned_stream_ends_without_saying_how() -> None:
    stream = TurnStream("c", "r")
    reading = asyncio.create_task(read(stream))
    stream.publish(delta("half"))
    await asyncio.sleep(0)
    stream.abandon()
    assert text_of(await reading) == "half"
    assert stream.ended
    assert not stream.concluded


@pytest.mark.spec("GTW-135", "TRN-319")
async def test_only_the_sender_gets_what_is_private() -> None:
    stream = TurnStream("c", "r")
    stream.publish(events_pb2.TurnEvent(user_context=events_pb2.UserContext(context="note")))
    stream.publish(events_pb2.TurnEvent(tool_call_delta=events_pb2.ToolCallDelta(name="x")))
    stream.publish(done())
    assert [e.WhichOneof("event") for e in await read(stream)] == ["done"]
    assert len(await read(stream, private=True)) == 3


@pytest.mark.spec("GTW-275", "TRN-061")
async def test_a_watcher_too_far_behind_is_cut_off_and_the_others_are_not() -> None:
    stream = TurnStream("c", "r")
    slow = stream.events()
    fast = asyncio.create_task(read(stream))
    first = asyncio.ensure_future(anext(slow))
    await asyncio.sleep(0)
    stream.publish(call("first"))
    assert (await first).tool_call.name == "first"
    caught_up = asyncio.ensure_future(anext(slow))
    await asyncio.sleep(0)
    stream.publish(call("second"))
    await caught_up
    for n in range(WAITING_LIMIT + 1):
        stream.publish(call(str(n)))
        await asyncio.sleep(0)
    with pytest.raises(LimitReached):
        await anext(slow)
    stream.publish(done())
    assert len(await fast) == WAITING_LIMIT + 4


async def test_text_never_counts_as_being_behind() -> None:
    stream = TurnStream("c", "r")
    slow = stream.events()
    waiting = asyncio.ensure_future(anext(slow))
    await asyncio.sleep(0)
    for n in range(WAITING_LIMIT * 3):
        stream.publish(delta(f"{n} "))
    stream.publish(done())
    first = await waiting
    rest = [event async for event in slow]
    assert text_of([first, *rest]) == "".join(f"{n} " for n in range(WAITING_LIMIT * 3))


async def test_a_run_that_goes_on_after_a_pause_goes_on_counting() -> None:
    streams = Streams()
    first = streams.open("c", "r")
    first.publish(delta("a"))
    first.publish(events_pb2.TurnEvent(approval_required=events_pb2.ApprovalRequired()))
    second = streams.open("c", "r")
    second.publish(delta("b"))
    assert second.next_seq == 4
    assert streams.open("c", "other").next_seq == 1


async def test_waiting_for_the_next_turn_of_a_conversation() -> None:
    streams = Streams()
    waiting = asyncio.create_task(streams.wait("c"))
    await asyncio.sleep(0)
    streams.open("another", "r")
    opened = streams.open("c", "r")
    assert await waiting is opened

"""A message becomes a turn: the gate for messages, the queue, steering and stopping."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from crew.v1 import conversations_pb2, runs_pb2, turns_pb2

from tests.fixtures.crew import Crew, http_status_of, names_of, running_crew, until
from tests.fixtures.model_server import ModelServer, call, text, turn
from tests.fixtures.postgres import ScratchDatabase


def priced(cost: float | None) -> dict[str, float]:
    """Usage with this price, or without one."""
    tokens = {"prompt_tokens": 100, "completion_tokens": 10}
    return tokens if cost is None else {**tokens, "cost": cost}


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer):
    """A crew whose model is the scripted server."""
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as running:
        yield running


@pytest.mark.spec("TRN-002", "TRN-041", "TRN-043", "TRN-050", "TRN-275", "GTW-045", "GTW-046", "GTW-047")
async def test_inbound_answers_when_the_turn_ended_and_keeps_one_conversation_a_day(crew: Crew) -> None:
    first = await crew.turns.Inbound(turns_pb2.InboundRequest(text="hello"))
    again = await crew.turns.Inbound(turns_pb2.InboundRequest(text="hello again"))
    assert (first.status, first.queued, first.steps, first.agent_id) == ("done", False, 1, "default")
    assert "hello" in first.text
    assert first.conversation_id == again.conversation_id
    runs = (await crew.runs.List(runs_pb2.RunsRequest())).runs
    assert [(run.source, run.status) for run in runs] == [("api", "done"), ("api", "done")]


@pytest.mark.spec("TRN-035")
async def test_the_gate_opens_holds_and_registers(asked: Crew, model_server: ModelServer) -> None:
    gate = model_server.gate("held")
    model_server.play(turn({"gate": "held"}, {"text": "First."}), text("Second."))
    frames = asked.runs.Activity(runs_pb2.ActivityRequest())
    assert (await frames.read()).WhichOneof("frame") == "snapshot"
    first = asyncio.ensure_future(asked.turns.Inbound(turns_pb2.InboundRequest(text="one")))
    await gate.reached()
    second = await asked.turns.Inbound(turns_pb2.InboundRequest(text="two"))
    # It was found again, and is held: the second message waits for the turn of the first.
    assert second.queued
    async with asyncio.timeout(30):
        while (frame := await frames.read()).WhichOneof("frame") != "run":
            pass
    assert (frame.run.run.conversation_id, frame.run.run.status) == (second.conversation_id, "running")
    gate.release()
    assert (await first).conversation_id == second.conversation_id
    frames.cancel()


@pytest.mark.spec("TRN-005", "TRN-040")
async def test_a_label_keeps_one_relay_apart_from_another(crew: Crew) -> None:
    ids = [
        (await crew.turns.Inbound(turns_pb2.InboundRequest(text="x", channel=channel))).conversation_id
        for channel in ("api:a", "api:b", "api:a")
    ]
    assert ids[0] != ids[1]
    assert ids[0] == ids[2]
    continued = await crew.turns.Inbound(turns_pb2.InboundRequest(text="y", conversation_id=ids[1]))
    assert continued.conversation_id == ids[1]


@pytest.mark.spec("TRN-045", "TRN-047", "TRN-048", "TRN-057", "GTW-049", "GTW-050")
@pytest.mark.parametrize(
    ("request_", "status", "reason"),
    [
        (turns_pb2.InboundRequest(text="x", source="job:coach/brief"), 422, "RESERVED_SOURCE"),
        (turns_pb2.InboundRequest(text="x", agent_id="nobody"), 404, "NO_AGENT"),
        (turns_pb2.InboundRequest(text="x", conversation_id="nothing"), 404, "NO_CONVERSATION"),
        (turns_pb2.InboundRequest(text=" "), 422, "EMPTY_MESSAGE"),
        (turns_pb2.InboundRequest(text="/steer"), 422, "BARE_STEER"),
        (turns_pb2.InboundRequest(text="x" * 200_001), 413, "MESSAGE_TOO_LONG"),
    ],
)
async def test_what_inbound_refuses_leaves_nothing_behind(
    crew: Crew, request_: turns_pb2.InboundRequest, status: int, reason: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await crew.turns.Inbound(request_)
    assert http_status_of(refused.value) == (status, reason)
    assert not (await crew.conversations.List(conversations_pb2.ListConversationsRequest())).conversations
    assert not (await crew.runs.List(runs_pb2.RunsRequest())).runs


@pytest.mark.spec("TRN-051", "TRN-098", "TRN-101", "TRN-258", "TRN-317", "TRN-320", "GTW-063", "TRN-326")
async def test_a_message_is_streamed_stored_and_recorded(asked: Crew, model_server: ModelServer) -> None:
    model_server.play(text("Good morning.", pieces=3, usage=priced(0.002)))
    conversation_id = await asked.open()
    events = await asked.send(conversation_id, "Hello there, who are you?")
    assert names_of(events) == ["assistant_message", "done"]
    assert "".join(event.text_delta.text for event in events) == "Good morning."
    assert events[-1].done.spent_usd == pytest.approx(0.002)
    stored = await asked.get(conversation_id)
    assert [(message.role, message.content) for message in stored.messages] == [
        ("user", "Hello there, who are you?"),
        ("assistant", "Good morning."),
    ]
    assert [message.seq for message in stored.messages] == [1, 2]
    assert stored.title == "Hello there, who are you?"
    assert (stored.messages[1].provider, stored.messages[1].model) == ("openai", "test")
    assert not stored.running
    run = await asked.last_run(conversation_id)
    assert (run.status, run.summary, run.source, run.after_seq) == ("done", "Good morning.", "chat", 0)
    assert [step.kind for step in run.steps] == ["model"]
    assert run.steps[0].route == "openai:test"
    assert run.steps[0].HasField("ms")


@pytest.mark.spec("TRN-055", "TRN-065", "TRN-066", "TRN-087", "GTW-064", "GTW-065")
async def test_messages_sent_meanwhile_wait_and_are_answered_together(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("first")
    model_server.play(turn({"gate": "first"}, {"text": "One."}), text("Both."))
    conversation_id = await asked.open()
    running = asyncio.create_task(asked.send(conversation_id, "start"))
    await gate.reached()
    for position, words in enumerate(("one", "two"), 1):
        events = await asked.send(conversation_id, words)
        assert names_of(events) == ["queued"]
        assert (events[0].queued.kind, events[0].queued.position) == ("follow_up", position)
    waiting = (await asked.get(conversation_id)).queued
    assert [(item.text, item.position) for item in waiting] == [("one", 1), ("two", 2)]
    gate.release()
    await running
    await until(lambda: _messages(asked, conversation_id, 4))
    stored = await asked.get(conversation_id)
    assert stored.messages[2].content == "one\n\ntwo"
    assert not stored.queued
    assert len((await asked.runs.List(runs_pb2.RunsRequest(conversation_id=conversation_id))).runs) == 2


@pytest.mark.spec("TRN-063", "TRN-064", "GTW-068")
async def test_a_full_queue_refuses_the_next_and_stays_as_it_is(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("first")
    model_server.play(turn({"gate": "first"}, {"text": "One."}), text("All."))
    conversation_id = await asked.open()
    running = asyncio.create_task(asked.send(conversation_id, "start"))
    await gate.reached()
    for n in range(20):
        await asked.send(conversation_id, str(n))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await asked.send(conversation_id, "one too many")
    assert http_status_of(refused.value) == (429, "QUEUE_FULL")
    assert len((await asked.get(conversation_id)).queued) == 20
    gate.release()
    await running


@pytest.mark.spec("TRN-069", "TRN-070", "TRN-072", "TRN-283", "GTW-066")
async def test_a_steer_joins_the_running_turn_behind_the_tool_result(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("first")
    model_server.play(
        turn({"gate": "first"}, {"call": {"name": "workspace_list", "arguments": {"path": "."}}}),
        text("Looked at B."),
    )
    conversation_id = await asked.open()
    running = asyncio.create_task(asked.send(conversation_id, "start"))
    await gate.reached()
    steered = await asked.send(conversation_id, "/steer look at B")
    assert steered[0].queued.kind == "steer"
    await asked.send(conversation_id, "/steer and at C")
    gate.release()
    events = await running
    assert names_of(events)[-1] == "done"
    second = model_server.requests[1].messages
    assert [message["role"] for message in second[-2:]] == ["tool", "user"]
    assert second[-1]["content"] == "look at B\n\nand at C"
    run = await asked.last_run(conversation_id)
    assert [step.kind for step in run.steps] == ["model", "tool", "steer", "model"]
    assert len((await asked.runs.List(runs_pb2.RunsRequest(conversation_id=conversation_id))).runs) == 1


@pytest.mark.spec("TRN-073", "TRN-168")
async def test_a_steer_during_the_final_answer_is_answered_by_the_same_turn(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("end")
    model_server.play(turn({"text": "Almost "}, {"gate": "end"}, {"text": "done."}), text("Now B."))
    conversation_id = await asked.open()
    running = asyncio.create_task(asked.send(conversation_id, "start"))
    await gate.reached()
    await asked.send(conversation_id, "/steer B too")
    gate.release()
    events = await running
    assert events[-1].done.text == "Almost done.\n\nNow B."
    stored = await asked.get(conversation_id)
    assert [message.content for message in stored.messages] == ["start", "Almost done.", "B too", "Now B."]


@pytest.mark.spec("TRN-088", "TRN-091", "TRN-094", "TRN-095", "GTW-073", "GTW-074", "TRN-267")
async def test_stop_hands_waiting_texts_back_and_ends_the_turn(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("never")
    model_server.play(turn({"text": "Half an "}, {"gate": "never"}, {"text": "answer"}))
    conversation_id = await asked.open()
    running = asyncio.create_task(asked.send(conversation_id, "start"))
    await gate.reached()
    await asked.send(conversation_id, "one")
    await asked.send(conversation_id, "two")
    reply = await asked.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=conversation_id))
    assert (list(reply.cleared), reply.cancelled) == (["one", "two"], True)
    events = await running
    assert names_of(events) == ["error"]
    run = await asked.last_run(conversation_id)
    assert (run.status, run.summary) == ("error", "interrupted")
    stored = await asked.get(conversation_id)
    assert [message.content for message in stored.messages] == ["start", "Half an "]
    assert stored.unknown_cost_calls == 1
    again = await asked.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=conversation_id))
    assert (list(again.cleared), again.cancelled) == ([], False)


@pytest.mark.spec("TRN-089", "GTW-041")
async def test_stop_of_nothing_known_is_404(crew: Crew) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await crew.turns.Stop(
            turns_pb2.StopTurnRequest(conversation_id="00000000-0000-0000-0000-000000000000")
        )
    assert http_status_of(refused.value) == (404, "NO_CONVERSATION")


@pytest.mark.spec("TRN-053", "TRN-054", "GTW-078", "GTW-079", "GTW-080", "GTW-082")
async def test_the_same_request_twice_is_one_message(asked: Crew, model_server: ModelServer) -> None:
    gate = model_server.gate("mid")
    model_server.play(turn({"text": "One "}, {"gate": "mid"}, {"text": "answer."}), text("Second."))
    conversation_id = await asked.open()
    first = asyncio.create_task(asked.send(conversation_id, "start", request_id="r1"))
    await gate.reached()
    queued = await asked.send(conversation_id, "later", request_id="r2")
    repeated = await asked.send(conversation_id, "later", request_id="r2")
    assert queued[0].queued == repeated[0].queued
    joining = asyncio.create_task(asked.send(conversation_id, "start", request_id="r1"))
    await asyncio.sleep(0.05)
    gate.release()
    for events in (await first, await joining):
        assert "".join(event.text_delta.text for event in events) == "One answer."
        assert names_of(events) == ["assistant_message", "done"]
    await until(lambda: _messages(asked, conversation_id, 4))
    over = await asked.send(conversation_id, "later", request_id="r2")
    assert names_of(over)[-1] == "done"
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await asked.send(conversation_id, "another text", request_id="r1")
    assert http_status_of(refused.value) == (409, "REQUEST_ID_REUSED")
    assert len((await asked.get(conversation_id)).messages) == 4


@pytest.mark.spec("GTW-083")
async def test_two_identical_sends_that_race_store_one_message(crew: Crew) -> None:
    conversation_id = await crew.open()
    await asyncio.gather(*(crew.send(conversation_id, "hi", request_id="same") for _ in range(8)))
    stored = await crew.get(conversation_id)
    assert [message.role for message in stored.messages] == ["user", "assistant"]


@pytest.mark.spec("TRN-036", "TRN-081")
async def test_of_many_messages_at_once_one_opens_the_turn_and_none_is_lost(crew: Crew) -> None:
    conversation_id = await crew.open()
    texts = [f"message {n}" for n in range(15)]
    await asyncio.gather(*(crew.send(conversation_id, text) for text in texts))

    async def all_answered() -> bool:
        stored = await crew.get(conversation_id)
        return not stored.running and not stored.queued

    await until(all_answered)
    stored = await crew.get(conversation_id)
    said = "\n\n".join(message.content for message in stored.messages if message.role == "user")
    assert sorted(said.split("\n\n")) == sorted(texts)
    assert [message.role for message in stored.messages] == ["user", "assistant"] * (
        len(stored.messages) // 2
    )


@pytest.mark.spec("TRN-059", "TRN-058", "TRN-345", "GTW-075", "GTW-134")
async def test_who_leaves_does_not_stop_the_turn_and_who_comes_sees_it_whole(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("mid")
    model_server.play(turn({"text": "One "}, {"gate": "mid"}, {"text": "answer."}))
    conversation_id = await asked.open()
    leaving = asked.sending(conversation_id, "start")
    await gate.reached()
    leaving.cancel()
    watching = asyncio.create_task(
        asked.read(asked.turns.Watch(turns_pb2.WatchTurnRequest(conversation_id=conversation_id)))
    )
    await asyncio.sleep(0.05)
    gate.release()
    events = await watching
    assert "".join(event.text_delta.text for event in events) == "One answer."
    assert names_of(events)[-1] == "done"
    over = asked.turns.Watch(turns_pb2.WatchTurnRequest(conversation_id=conversation_id))
    metadata = dict(await over.initial_metadata())
    assert metadata["http-status"] == "204"
    assert await asked.read(over) == []


async def _messages(crew: Crew, conversation_id: str, count: int) -> bool:
    found = await crew.get(conversation_id)
    return len(found.messages) >= count and not found.running


@pytest.mark.spec("FLD-006", "TRN-117")
async def test_a_reply_without_a_word_is_asked_for_once_more(asked: Crew, model_server: ModelServer) -> None:
    model_server.play(turn(), text("Here I am."), turn(), turn())
    conversation_id = await asked.open()
    events = await asked.send(conversation_id, "start")
    assert events[-1].done.text == "Here I am."
    note = model_server.requests[1].messages[-1]
    assert note["role"] == "user"
    assert note["content"] != "start"
    events = await asked.send(conversation_id, "again")
    assert names_of(events)[-1] == "error"
    assert "2" in events[-1].error.message
    assert (await asked.last_run(conversation_id)).status == "error"


@pytest.mark.spec("TRN-021", "TRN-022", "TRN-109", "TRN-261", "GTW-056", "TRN-262")
async def test_a_spent_cap_halts_and_a_raised_one_lets_go_on(asked: Crew, model_server: ModelServer) -> None:
    model_server.play(
        call("workspace_list", {"path": "."}, usage=priced(0.02)),
        text("Done.", usage=priced(0.0)),
        text("More.", usage=priced(0.0)),
    )
    conversation_id = await asked.open(cost_cap_usd=0.01)
    events = await asked.send(conversation_id, "start")
    assert names_of(events) == ["assistant_message", "tool_call", "tool_result", "halted"]
    assert events[-1].halted.reason == "budget"
    assert len(model_server.requests) == 1
    assert (await asked.get(conversation_id)).over_budget
    request = conversations_pb2.UpdateConversationRequest(id=conversation_id, cost_cap_usd=-1)
    request.update_mask.paths.append("cost_cap_usd")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await asked.conversations.Update(request)
    assert http_status_of(refused.value)[0] == 422
    request.cost_cap_usd = 1
    assert not (await asked.conversations.Update(request)).over_budget
    events = await asked.send(conversation_id, "go on")
    assert events[-1].done.text == "Done."


@pytest.mark.spec("TRN-103", "TRN-104", "TRN-107", "TRN-108")
async def test_calls_of_the_last_step_do_not_run(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    environ = {"OPENAI_BASE_URL": model_server.base_url, "MY_AGENT_ROUTES": "openai:test"}
    async with running_crew(database, config="max_steps: 2\n", environ=environ) as crew:
        model_server.play(
            call("workspace_list", {"path": "."}), call("workspace_list", {"path": "./"}), text("Yes.")
        )
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "start")
        assert (events[-1].halted.reason, events[-1].halted.steps) == ("max_steps", 2)
        assert "2" in events[-1].halted.text
        stored = await crew.get(conversation_id)
        assert [message.role for message in stored.messages][-2:] == ["assistant", "tool"]
        assert stored.messages[-1].is_error
        await crew.send(conversation_id, "go on")
        roles = [message["role"] for message in model_server.requests[2].messages]
        assert roles.count("tool") == 2


@pytest.mark.spec("TRN-238", "TRN-240", "TRN-241", "TRN-244", "TRN-242")
async def test_a_route_that_fails_is_shown_and_the_next_answers(
    database: ScratchDatabase, model_server: ModelServer
) -> None:
    from tests.fixtures.model_server import refuse

    environ = {"OPENAI_BASE_URL": model_server.base_url, "MY_AGENT_ROUTES": "openai:one,openai:two"}
    async with running_crew(database, environ=environ) as crew:
        model_server.play(refuse(402, "no money"), text("From two."), refuse(400, "no"), refuse(400, "no"))
        conversation_id = await crew.open()
        events = await crew.send(conversation_id, "start")
        fallback = next(e.route_fallback for e in events if e.HasField("route_fallback"))
        assert (fallback.route, fallback.next_route) == ("openai:one", "openai:two")
        run = await crew.last_run(conversation_id)
        assert [step.kind for step in run.steps] == ["fallback", "model"]
        assert run.steps[1].route == "openai:two"
        assert len(model_server.requests) == 2
        events = await crew.send(conversation_id, "again")
        assert names_of(events)[-1] == "error"
        run = await crew.last_run(conversation_id)
        assert {step.kind for step in run.steps} == {"fallback"}


@pytest.mark.spec("TRN-239")
async def test_text_that_was_shown_stays_when_the_stream_breaks(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.play(turn({"text": "Half an "}, {"drop": True}))
    conversation_id = await asked.open()
    events = await asked.send(conversation_id, "start")
    assert names_of(events)[-1] == "error"
    assert len(model_server.requests) == 1
    stored = await asked.get(conversation_id)
    assert stored.messages[-1].content == "Half an "
    assert (stored.unknown_cost_calls, stored.running) == (1, False)


@pytest.mark.spec("TRN-259", "TRN-256")
async def test_an_unknown_price_is_counted_and_never_zero(asked: Crew, model_server: ModelServer) -> None:
    model_server.play(text("No price.", usage=priced(None)), text("Free.", usage=priced(0)))
    conversation_id = await asked.open()
    await asked.send(conversation_id, "one")
    stored = await asked.get(conversation_id)
    assert not stored.messages[1].HasField("cost_usd")
    assert (stored.unknown_cost_calls, stored.spent_usd) == (1, 0)
    await asked.send(conversation_id, "two")
    stored = await asked.get(conversation_id)
    assert stored.messages[3].cost_usd == 0
    assert stored.unknown_cost_calls == 1


@pytest.mark.spec("TRN-017", "TRN-018", "TRN-019", "GTW-057")
async def test_deleting_stops_the_turn_and_closes_its_run(asked: Crew, model_server: ModelServer) -> None:
    gate = model_server.gate("never")
    model_server.play(turn({"gate": "never"}))
    conversation_id, other = await asked.open(), await asked.open()
    running = asyncio.create_task(asked.send(conversation_id, "start"))
    await gate.reached()
    await asked.conversations.Delete(conversations_pb2.DeleteConversationRequest(id=conversation_id))
    await running
    with pytest.raises(grpc.aio.AioRpcError) as gone:
        await asked.get(conversation_id)
    assert http_status_of(gone.value) == (404, "NO_CONVERSATION")
    run = (await asked.runs.List(runs_pb2.RunsRequest())).runs[0]
    assert (run.conversation_id, run.status, run.summary) == (conversation_id, "error", "interrupted")
    assert (await asked.get(other)).id == other
    with pytest.raises(grpc.aio.AioRpcError) as gone:
        await asked.conversations.Delete(conversations_pb2.DeleteConversationRequest(id=conversation_id))
    assert http_status_of(gone.value)[0] == 404

"""Two orchestrators share the turns of one database: who is asked does not matter to who asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import grpc
import pytest
from crew.v1 import crew_pb2, events_pb2, runs_pb2, turns_pb2

from tests.fixtures.crew import Crew, Events, http_status_of, names_of, running_crew, until
from tests.fixtures.model_server import ModelServer, call, text, turn
from tests.fixtures.postgres import ScratchDatabase
from tests.fixtures.replicas import replicas

WRITE = {"path": "made.txt", "content": "once\n"}


@pytest.fixture
async def asked(database: ScratchDatabase, model_server: ModelServer) -> AsyncIterator[Crew]:
    """A crew whose model is the scripted server."""
    environ = {"MY_AGENT_ROUTES": "openai:test", "OPENAI_BASE_URL": model_server.base_url}
    async with running_crew(database, environ=environ) as running:
        yield running


async def first_event(stream: object) -> events_pb2.TurnEvent:
    async with asyncio.timeout(30):
        async for event in stream:  # type: ignore[attr-defined]
            return event
    raise AssertionError("a stream without events")


def watch(conversation_id: str, last_event_id: str | None = None) -> turns_pb2.WatchTurnRequest:
    return turns_pb2.WatchTurnRequest(conversation_id=conversation_id, last_event_id=last_event_id)


def said(events: Events) -> str:
    return "".join(event.text_delta.text for event in events)


@pytest.mark.spec("TRN-036", "TRN-037", "TRN-206", "TRN-207")
async def test_of_fifty_decisions_over_two_processes_one_counts(
    asked: Crew, model_server: ModelServer
) -> None:
    gate = model_server.gate("resumed")
    model_server.play(
        call("workspace_write", WRITE), turn({"gate": "resumed"}, {"text": "Written."}), text("Answered.")
    )
    async with replicas(asked) as both:
        one, other = (replica.crew for replica in both)
        conversation_id = await one.open()
        assert names_of(await one.send(conversation_id, "Write it."))[-1] == "approval_required"
        approval_id = await other.pending(conversation_id)
        won: list[asyncio.Task[Events]] = []
        refused: list[tuple[int, str]] = []

        async def decide(number: int) -> None:
            # Every third says no: whichever is first stands.
            request = turns_pb2.DecideApprovalRequest(approval_id=approval_id, approve=number % 3 != 0)
            stream = both[number % 2].crew.turns.Decide(request)
            try:
                await first_event(stream)
            except grpc.aio.AioRpcError as error:
                refused.append(http_status_of(error))
            else:
                won.append(asyncio.create_task(asked.read(stream)))

        await asyncio.gather(*(decide(number) for number in range(50)))
        # The resumed turn stands before its model: a message right after the decision waits for it.
        queued = [await replica.crew.send(conversation_id, "And now?") for replica in both]
        assert [names_of(events) for events in queued] == [["queued"], ["queued"]]
        assert [events[0].queued.position for events in queued] == [1, 2]
        gate.release()
        assert len(won) == 1
        assert names_of(await won[0])[-1] == "done"
        assert refused == [(409, "ALREADY_DECIDED")] * 49

        async def answered() -> bool:
            found = await other.get(conversation_id)
            return not found.running and not found.queued

        await until(answered)
        roles = [message.role for message in (await other.get(conversation_id)).messages]
        assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
        approved = (await one.get(conversation_id)).messages[2].is_error is False
        assert (asked.workspace / "made.txt").exists() is approved


@pytest.mark.spec("TRN-059", "TRN-060", "TRN-061", "TRN-054")
async def test_a_turn_is_watched_through_the_other_process(asked: Crew, model_server: ModelServer) -> None:
    gate = model_server.gate("rest")
    model_server.play(turn({"text": "The first half "}, {"gate": "rest"}, {"text": "and the second."}))
    async with replicas(asked) as both:
        one, other = (replica.crew for replica in both)
        conversation_id = await one.open()
        nothing = other.turns.Watch(turns_pb2.WatchTurnRequest(conversation_id=conversation_id))
        assert ("http-status", "204") in tuple(await nothing.initial_metadata())
        sending = one.sending(conversation_id, "Tell me.", request_id="named")
        begun = await first_event(sending)
        viewers = [
            other.turns.Watch(watch(conversation_id)),
            other.sending(conversation_id, "Tell me.", request_id="named"),
            other.automation.Watch(crew_pb2.WatchRequest(conversation_id=conversation_id, wait=True)),
        ]
        firsts = [await first_event(viewer) for viewer in viewers]
        assert {first.run_id for first in firsts} == {begun.run_id}
        resumed = other.turns.Watch(watch(conversation_id, f"{begun.run_id}:{begun.seq}"))
        await resumed.initial_metadata()
        gate.release()
        seen = [begun, *await one.read(sending)]
        for first, viewer in zip(firsts, viewers, strict=True):
            events = [first, *await other.read(viewer)]
            assert said(events) == said(seen) == "The first half and the second."
            assert events[-1] == seen[-1]
        # Behind the last event that was seen, and nothing twice.
        behind = await other.read(resumed)
        assert f"{begun.text_delta.text}{said(behind)}" == said(seen)
        assert behind[-1] == seen[-1]


@pytest.mark.spec("TRN-088", "TRN-090", "TRN-094")
@pytest.mark.parametrize("schedule", ["on", "off"])
async def test_a_turn_is_stopped_through_the_other_process(
    asked: Crew, model_server: ModelServer, schedule: str
) -> None:
    model_server.play(call("shell_run", {"command": "echo begun > begun; sleep 60; echo ended > ended"}))
    async with replicas(asked, environ={"MY_AGENT_SCHEDULE": schedule}) as both:
        one, other = (replica.crew for replica in both)
        conversation_id = await one.open(autonomous=True)
        sending = asyncio.create_task(one.send(conversation_id, "Run it."))

        async def running() -> bool:
            return (asked.workspace / "begun").exists()

        await until(running)
        assert names_of(await other.send(conversation_id, "Later."))[-1] == "queued"
        stopped = await other.turns.Stop(turns_pb2.StopTurnRequest(conversation_id=conversation_id))
        assert (list(stopped.cleared), stopped.cancelled) == (["Later."], True)
        assert names_of(await sending)[-1] == "error"
        found = await other.get(conversation_id)
        assert [message.role for message in found.messages] == ["user", "assistant", "tool"]
        assert not found.running
        run = await other.last_run(conversation_id)
        assert (run.status, run.summary) == ("error", "interrupted")
        assert not (asked.workspace / "ended").exists()


@pytest.mark.spec("TRN-141", "TRN-157")
async def test_who_watches_a_turn_through_another_process_finds_it_again_when_its_own_died(
    asked: Crew, model_server: ModelServer
) -> None:
    model_server.gate("never")
    model_server.play(turn({"text": "Half "}, {"gate": "never"}), text("The whole."))
    async with replicas(asked) as both:
        one, other = (replica.crew for replica in both)
        conversation_id = await one.open()
        sending = one.sending(conversation_id, "Tell me.")
        await first_event(sending)
        watched = other.turns.Watch(watch(conversation_id))
        await first_event(watched)
        await both[0].process.kill()
        with suppress(grpc.aio.AioRpcError):
            await one.read(sending)
        with pytest.raises(grpc.aio.AioRpcError) as moved:
            await other.read(watched)
        assert http_status_of(moved.value) == (503, "TURN_MOVED")

        async def over() -> bool:
            return not (await other.get(conversation_id)).running

        await until(over)
        found = await other.get(conversation_id)
        assert [message.content for message in found.messages] == ["Tell me.", "The whole."]
        runs = (await other.runs.List(runs_pb2.RunsRequest(conversation_id=conversation_id))).runs
        assert [run.status for run in runs] == ["done", "error"]

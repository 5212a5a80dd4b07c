"""What callers of any channel do with turns: one set of application functions (TRN-034).

Servicers, the web's and automation's alike, go through this and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from crew.v1 import events_pb2

from services.common.errors import NotFound
from services.orchestrator.store import conversations, queue, runs, turns
from services.orchestrator.store.pool import Database
from services.orchestrator.store.space import Space
from services.orchestrator.turns.activity import Activity
from services.orchestrator.turns.decisions import Decided, Decisions, Expired
from services.orchestrator.turns.inbound import Inbound, Joined, Opened
from services.orchestrator.turns.naming import Naming
from services.orchestrator.turns.peers import Peers, WatchedTurn
from services.orchestrator.turns.runner import STOP_SECONDS, TurnRunner
from services.orchestrator.turns.stream import Streams, TurnStream
from services.orchestrator.turns.upkeep import Upkeep

T = TypeVar("T")

log = structlog.get_logger(__name__)

# How soon a turn that begins in another replica is noticed by whoever waits for one.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a stop took away."""

    # Texts of waiting messages, in the order they were sent.
    cleared: list[str]
    cancelled: bool


class TurnDesk:
    """Send, watch, stop, decide.

    Args:
        database: Holds conversations.
        inbound: Takes messages in.
        decisions: Settles requests.
        runner: Drives the turns of this process.
        upkeep: Knows this process's instance and reaches the others.
        streams: Where turns that run here are watched.
        peers: Where those of other replicas are.
        activity: Told of conversations that got a title.
        space: Whether there is room for a turn.
        naming: Finds titles for new conversations.
    """

    def __init__(
        self,
        *,
        database: Database,
        inbound: Inbound,
        decisions: Decisions,
        runner: TurnRunner,
        upkeep: Upkeep,
        streams: Streams,
        peers: Peers,
        activity: Activity,
        space: Space,
        naming: Naming,
    ) -> None:
        self._database = database
        self._inbound = inbound
        self._decisions = decisions
        self._runner = runner
        self._upkeep = upkeep
        self._streams = streams
        self._peers = peers
        self._activity = activity
        self._begun: set[asyncio.Task[Any]] = set()
        self._space = space
        self._naming = naming

    async def send(
        self, conversation_id: str, text: str, *, source: str, request_id: str | None = None
    ) -> WatchedTurn:
        """Take a message in; the stream is the turn's, or holds one ``queued`` event.

        Raises:
            StoreFull: There is no room; the message was not stored (FLD-051).
            CrewError: See `Inbound.send`.
        """
        self._space.require()
        return await self._to_its_end(self._send(conversation_id, text, source, request_id))

    async def _send(
        self, conversation_id: str, text: str, source: str, request_id: str | None
    ) -> WatchedTurn:
        accepted = await self._inbound.send(
            conversation_id, text, source=source, request_id=request_id, instance=self._upkeep.instance
        )
        match accepted:
            case Opened(claim=claim, run=run, conversation=conversation, title=title):
                stream = self._runner.start(claim, run, conversation)
                if title:
                    self._activity.conversation_changed(conversation_id, title=title)
                self._naming.after(stream)
                return stream
            case Joined(item=item):
                queued = events_pb2.Queued(item_id=item.id, kind=item.kind, position=item.position)
                return _single(conversation_id, "", events_pb2.TurnEvent(queued=queued))
        if stream_of_run := self._streams.of_run(conversation_id, accepted.run_id):
            return stream_of_run
        if (running := await self._elsewhere(conversation_id)) and running.run_id == accepted.run_id:
            return running
        return await self._final(conversation_id, accepted.run_id)

    async def go_on(self, conversation_id: str) -> TurnStream:
        """Open a turn that goes on with a reply that broke off (FLD-013).

        Raises:
            StoreFull: There is no room.
            CrewError: See `Inbound.go_on`.
        """
        self._space.require()
        return await self._to_its_end(self._go_on(conversation_id))

    async def _go_on(self, conversation_id: str) -> TurnStream:
        opened = await self._inbound.go_on(conversation_id, instance=self._upkeep.instance)
        return self._runner.start(opened.claim, opened.run, opened.conversation)

    async def conversation_for(
        self, *, agent_id: str | None, channel: str, conversation_id: str | None
    ) -> str:
        """See `Inbound.conversation_for`."""
        return await self._inbound.conversation_for(
            agent_id=agent_id, channel=channel, conversation_id=conversation_id
        )

    async def agent_of(self, conversation_id: str) -> str:
        """The id of the agent a conversation belongs to; empty when it is gone."""
        async with self._database.connection() as connection:
            conversation = await conversations.get(connection, conversation_id)
        return conversation.agent_id if conversation else ""

    async def watch(
        self, conversation_id: str, *, last_run_id: str | None = None, here: bool = False
    ) -> WatchedTurn | None:
        """The running turn; the one just ended if the watcher had begun with it; else None.

        Args:
            conversation_id: Whose turn.
            last_run_id: Of the run whose events the watcher saw last.
            here: Only what runs in this process; so two replicas never ask each other in turns.

        Raises:
            NotFound: No such conversation.
        """
        async with self._database.connection() as connection:
            if await conversations.get(connection, conversation_id) is None:
                raise NotFound("NO_CONVERSATION", "error.no_conversation", id=conversation_id)
        if live := self._streams.live(conversation_id):
            return live
        if last_run_id and (just_ended := self._streams.of_run(conversation_id, last_run_id)):
            return just_ended
        return None if here else await self._elsewhere(conversation_id)

    async def next_turn(self, conversation_id: str) -> WatchedTurn:
        """The turn that runs, or else the next one that begins, in whichever replica."""
        while True:
            if running := await self._elsewhere(conversation_id):
                return running
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    return await self._streams.wait(conversation_id)

    async def _elsewhere(self, conversation_id: str) -> WatchedTurn | None:
        async with self._database.connection() as connection:
            found = await turns.elsewhere(connection, conversation_id, self._upkeep.instance)
        return self._peers.turn(found.address, conversation_id, found.run_id) if found else None

    async def stop(self, conversation_id: str) -> Stopped:
        """Empty the queue, then stop the turn, whoever runs it (TRN-088 to 091).

        Raises:
            NotFound: No such conversation.
        """
        return await self._to_its_end(self._stop(conversation_id))

    async def _stop(self, conversation_id: str) -> Stopped:
        async with self._database.transaction() as connection:
            if await conversations.lock(connection, conversation_id) is None:
                raise NotFound("NO_CONVERSATION", "error.no_conversation", id=conversation_id)
            items = await queue.waiting(connection, conversation_id)
            await queue.forget_requests(connection, conversation_id, [item.id for item in items])
            await queue.take(connection, conversation_id)
        cancelled = await self._runner.stop(conversation_id) or await self._upkeep.stop_elsewhere(
            conversation_id, seconds=STOP_SECONDS
        )
        return Stopped([item.text for item in items], cancelled)

    async def decide(
        self, approval_id: str, *, conversation_id: str | None, approve: bool, always: bool, by: str
    ) -> TurnStream:
        """Approve or deny; the stream is the resumed turn's.

        Raises:
            StoreFull: There is no room; the request still waits.
            CrewError: See `Decisions.decide`.
        """
        self._space.require()
        return await self._to_its_end(
            self._resumed(
                approval_id,
                self._decisions.decide(
                    approval_id,
                    conversation_id=conversation_id,
                    approve=approve,
                    always=always,
                    by=by,
                    instance=self._upkeep.instance,
                ),
            )
        )

    async def answer(
        self, approval_id: str, *, conversation_id: str | None, answer: str, by: str
    ) -> TurnStream:
        """Answer a question; the stream is the resumed turn's.

        Raises:
            StoreFull: There is no room; the question still waits.
            CrewError: See `Decisions.answer`.
        """
        self._space.require()
        return await self._to_its_end(
            self._resumed(
                approval_id,
                self._decisions.answer(
                    approval_id,
                    conversation_id=conversation_id,
                    answer=answer,
                    by=by,
                    instance=self._upkeep.instance,
                ),
            )
        )

    async def _resumed(self, approval_id: str, deciding: Coroutine[Any, Any, Decided]) -> TurnStream:
        try:
            decided = await deciding
        except Expired:
            # A server that starts nothing by itself has no sweep that would go on with it (TRN-214).
            if expired := await self._decisions.expire(approval_id, instance=self._upkeep.instance):
                self._runner.start(expired.claim, expired.run, expired.conversation)
            raise
        stream = self._runner.start(decided.claim, decided.run, decided.conversation)
        self._naming.after(stream)
        return stream

    async def _to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Go on although the caller leaves: what was committed has its turn started."""
        task = asyncio.ensure_future(work)
        self._begun.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._begun.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Nobody may be left to be told.
            log.debug("request_refused", error=type(error).__name__)

    async def _final(self, conversation_id: str, run_id: str) -> TurnStream:
        """The last event of a turn that is over, from its record (GTW-080)."""
        async with self._database.connection() as connection:
            run = await runs.get(connection, run_id)
            conversation = await conversations.get(connection, conversation_id)
        assert conversation is not None, "its row was locked a moment ago"
        if run is None:
            raise NotFound("NO_RUN", "error.no_run", id=run_id)
        totals: dict[str, Any] = {
            "steps": run.model_calls,
            "spent_usd": conversation.spent_usd,
            "unknown_cost_calls": conversation.unknown_cost_calls,
        }
        match run.status:
            case "done":
                event = events_pb2.TurnEvent(done=events_pb2.Done(text=run.summary, **totals))
            case "halted":
                event = events_pb2.TurnEvent(halted=events_pb2.Halted(reason=run.summary, **totals))
            case _:
                event = events_pb2.TurnEvent(error=events_pb2.Failed(message=run.summary))
        return _single(conversation_id, run_id, event)


def _single(conversation_id: str, run_id: str, event: events_pb2.TurnEvent) -> TurnStream:
    stream = TurnStream(conversation_id, run_id)
    stream.publish(event)
    return stream

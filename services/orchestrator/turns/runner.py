"""The turns that run in this process: starting, stopping, ending and handing them over."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import structlog
from crew.v1 import events_pb2

from services.common.errors import Unavailable
from services.common.rpc import trace
from services.common.wording import Catalogue, Locale
from services.orchestrator.agents.agents import Agents
from services.orchestrator.calls import closing
from services.orchestrator.calls.budget import CALLS_PER_STEP, NestedBudget
from services.orchestrator.models.contract import Route
from services.orchestrator.store import compactions, messages, runs, turns
from services.orchestrator.store.pool import Database, DatabaseLost, WriteRefused
from services.orchestrator.store.records import Conversation, HaltReason, Message, RunStatus
from services.orchestrator.store.space import Space
from services.orchestrator.store.turns import Claim, ClaimLost
from services.orchestrator.turns.activity import Activity
from services.orchestrator.turns.loop import TurnLoop
from services.orchestrator.turns.recorder import RunRecorder, run_message
from services.orchestrator.turns.stream import Streams, TurnStream
from services.orchestrator.turns.turn import (
    ENDING_STOPS,
    Done,
    Ending,
    Failed,
    Halted,
    StopReason,
    Turn,
    Waiting,
    cut_off_by,
)
from services.orchestrator.turns.views import approval_view
from services.orchestrator.turns.writes import TurnWrites

log = structlog.get_logger(__name__)

# How long a stop waits for the turn's end before it answers all the same, in seconds.
STOP_SECONDS = 10.0


@dataclass(slots=True)
class _Live:
    turn: Turn | None
    task: asyncio.Task[None]
    stop_reason: StopReason | None = None

    # Ends a turn that nobody attends.
    timer: asyncio.TimerHandle | None = None

    def stop(self, reason: StopReason) -> None:
        if self.stop_reason is None:
            self.stop_reason = reason
            if self.turn is not None:
                self.turn.stop_reason = reason
            self.task.cancel()

    def end_after(self, seconds: float) -> None:
        """Stop the turn when its time is up (FLD-008)."""
        self.timer = asyncio.get_running_loop().call_later(seconds, self.stop, "time")

    def keep_time(self) -> None:
        """Time counts no more: the turn has ended or waits."""
        if self.timer is not None:
            self.timer.cancel()


class TurnRunner:
    """Drives turns, one task each.

    Args:
        database: Holds what turns write.
        writes: The turns' transactions.
        loop: Runs one turn.
        agents: Who answers.
        streams: Where watchers find a running turn.
        activity: The live view over all runs.
        catalogue: Sentences for how turns end.
        locale: Of everything the crew says.
        space: Told when Postgres refuses what a turn writes.
    """

    def __init__(
        self,
        *,
        database: Database,
        writes: TurnWrites,
        loop: TurnLoop,
        agents: Agents,
        streams: Streams,
        activity: Activity,
        catalogue: Catalogue,
        locale: Locale,
        space: Space,
    ) -> None:
        self._database = database
        self._writes = writes
        self._loop = loop
        self._agents = agents
        self._streams = streams
        self._activity = activity
        self._catalogue = catalogue
        self._locale: Locale = locale
        self._space = space
        self._live: dict[str, _Live] = {}
        self._closing = False
        # Claims that were let go because Postgres was away, and whether a person had stopped the turn.
        self.dropped: list[tuple[Claim, bool]] = []
        # Told which conversation became free, so that what waits in it can be answered.
        self.freed: asyncio.Queue[str] = asyncio.Queue()

    @property
    def running(self) -> int:
        """How many turns run here."""
        return len(self._live)

    @property
    def working_on(self) -> list[str]:
        """The conversations whose turns run here."""
        return list(self._live)

    def start(
        self, claim: Claim, run: runs.Run, conversation: Conversation, *, recovered: bool = False
    ) -> TurnStream:
        """Begin, or go on with, a turn whose claim is held; its stream exists when this returns.

        Raises:
            Unavailable: The process is stopping; the claim is left for whoever takes it over.
        """
        if self._closing:
            raise Unavailable("STOPPING", "error.stopping")
        stream = self._streams.open(claim.conversation_id, run.id)
        task = asyncio.create_task(
            self._drive(claim, run, conversation, stream, recovered), name=f"turn {claim.conversation_id}"
        )
        self._live[claim.conversation_id] = _Live(None, task)
        return stream

    async def stop(self, conversation_id: str) -> bool:
        """End the turn of a conversation because a person said so; False when none runs here.

        Returns when the turn has ended, its processes included, at the latest after `STOP_SECONDS`.
        """
        live = self._live.get(conversation_id)
        if live is None:
            return False
        live.stop("person")
        await asyncio.wait({live.task}, timeout=STOP_SECONDS)
        return True

    def taken_away(self, conversation_id: str) -> None:
        """Leave a turn that outlived its time and whose claim is gone."""
        if live := self._live.get(conversation_id):
            if live.turn is not None:
                self._halted(live.turn, "time")
            live.task.cancel()

    async def stop_all(self, reason: StopReason) -> None:
        """Stop every turn and wait until they have ended, at the latest after `STOP_SECONDS`.

        Whether a turn is ended by it or goes on elsewhere is the reason's to say.
        """
        tasks = [live.task for live in self._live.values()]
        for live in list(self._live.values()):
            live.stop(reason)
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)

    async def close(self) -> None:
        """Take no more turns and hand over those that run."""
        self._closing = True
        await self.stop_all("shutdown")

    async def _drive(
        self, claim: Claim, run: runs.Run, conversation: Conversation, stream: TurnStream, recovered: bool
    ) -> None:
        # One trace a turn: that of the request it began with, where there is one (PIP-110).
        trace.begun()
        turn: Turn | None = None
        try:
            turn = await self._prepare(claim, run, conversation, stream, recovered)
            live = self._live[claim.conversation_id]
            live.turn, turn.stop_reason = turn, live.stop_reason
            if turn.seconds_left is not None:
                live.end_after(turn.seconds_left)
            ending = await self._loop.run(turn)
            live.keep_time()
            await self._conclude(turn, ending)
        except asyncio.CancelledError:
            if turn is None or turn.stop_reason not in ENDING_STOPS:
                self._let_go(run.id, stream)
                raise
            await asyncio.shield(self._cut_off(turn))
        except ClaimLost:
            log.info("turn_taken_over", conversation_id=claim.conversation_id, run_id=run.id)
            self._let_go(run.id, stream)
        except DatabaseLost as error:
            self._lost_database(claim, stream, error)
        except Exception:
            log.exception("turn_failed", conversation_id=claim.conversation_id, run_id=run.id)
            await self._fail(turn, claim, run, stream)
        finally:
            # The next turn of the conversation may have begun already.
            ended = self._live.get(claim.conversation_id)
            if ended is not None and ended.task is asyncio.current_task():
                ended.keep_time()
                del self._live[claim.conversation_id]
            self._streams.forget_later(stream)
            self.freed.put_nowait(claim.conversation_id)

    async def _prepare(
        self, claim: Claim, run: runs.Run, conversation: Conversation, stream: TurnStream, recovered: bool
    ) -> Turn:
        agent = self._agents.get(conversation.agent_id)
        if agent is None:
            raise LookupError(f"agent {conversation.agent_id} is gone")
        async with self._database.connection() as connection:
            stored_log = await messages.log(connection, conversation.id)
            # Only one that asked a model already has any.
            steps = (await runs.steps(connection, [run.id]))[run.id] if run.model_calls else []
            # The run's own holds from a claim on; a claim that was taken over goes on counting.
            seconds_left = await turns.seconds_left(connection, claim) if recovered else run.seconds_left
            compaction = await compactions.standing(connection, conversation.id)
            of_this_turn = await runs.lineage(connection, run.id) if run.model_calls else {run.id}
        recorder = RunRecorder(run_message(run, steps), self._activity)
        wait = recorder.unfinished("approval")
        recorder.status("running")
        turn = Turn(
            claim=claim,
            conversation=conversation,
            agent=agent,
            source=run.source,
            locale=self._locale,
            stream=stream,
            recorder=recorder,
            log=stored_log,
            # A resumed turn starts on the agent's own routes again (TRN-156).
            routes=[Route.parse(route) for route in agent.routes],
            model_calls=run.model_calls,
            recovered=recovered,
            escalated=recorder.has("escalation"),
            seconds_left=seconds_left,
            compaction=compaction,
            nested_budget=NestedBudget(
                agent.max_steps * CALLS_PER_STEP, used=_nested_calls(stored_log, of_this_turn)
            ),
        )
        if wait is not None:
            recorder.close(wait)
            await self._writes.step(turn, wait)
        return turn

    async def _conclude(self, turn: Turn, ending: Ending) -> None:
        """Write how the turn ended, then say it: what is shown is always already true."""
        match ending:
            case Done(text=text):
                self._status(turn, "done", " ".join(text.split())[:200])
                event = events_pb2.TurnEvent(done=events_pb2.Done(text=text, **_totals(turn)))
            case Halted(reason=reason, text=sentence):
                if not ending.closed:
                    await self._writes.finish(turn, "halted", reason)
                self._halted(turn, reason, sentence)
                return
            case Failed(message=message, summary=summary):
                if not ending.closed:
                    await self._writes.finish(turn, "error", summary or message)
                self._status(turn, "error", summary or message)
                event = events_pb2.TurnEvent(error=events_pb2.Failed(message=message))
            case Waiting(approval=approval):
                self._status(turn, "awaiting_approval")
                event = events_pb2.TurnEvent(
                    approval_required=events_pb2.ApprovalRequired(approval=approval_view(approval))
                )
        turn.stream.publish(event)

    def _halted(self, turn: Turn, reason: HaltReason, sentence: str = "") -> None:
        self._status(turn, "halted", reason)
        text = sentence or self._catalogue.text(
            turn.locale, f"turn.halted.{reason}", **self._halt_values(turn)
        )
        halted = events_pb2.Halted(reason=reason, text=text, **_totals(turn))
        turn.stream.publish(events_pb2.TurnEvent(halted=halted))

    async def _cut_off(self, turn: Turn) -> None:
        """End a turn that a person stopped (TRN-092 to 095), or that has no time or no room left."""
        why: closing.Why = "interrupted"
        if turn.stop_reason in ("time", "full") and not turn.recovered:
            why = cut_off_by(turn)
        sentence = self._catalogue.text(
            turn.locale, "turn.no_room" if turn.stop_reason == "full" else "turn.stopped"
        )
        summary = {"time": "time", "full": sentence}.get(str(turn.stop_reason), "interrupted")
        try:
            self._end_open_steps(turn)
            async with self._database.connection() as connection:
                calls = await messages.open_calls(connection, turn.conversation_id)
            closed = [closing.close(call, why, turn.locale) for call in calls]
            status: RunStatus = "halted" if turn.stop_reason == "time" else "error"
            await self._writes.interrupted(turn, summary, closed, status=status)
        except ClaimLost:
            self._let_go(turn.run_id, turn.stream)
            return
        except DatabaseLost as error:
            self._lost_database(turn.claim, turn.stream, error, stop=turn.stop_reason == "person")
            return
        if turn.stop_reason == "time":
            self._halted(turn, "time")
            return
        self._status(turn, "error", summary)
        turn.stream.publish(events_pb2.TurnEvent(error=events_pb2.Failed(message=sentence)))

    async def _fail(self, turn: Turn | None, claim: Claim, run: runs.Run, stream: TurnStream) -> None:
        """End a turn that met a fault of our own; the person reads that, the log has the rest."""
        message = self._catalogue.text(self._locale, "turn.internal_error", run=run.id)
        try:
            if turn is not None:
                self._end_open_steps(turn)
                async with self._database.connection() as connection:
                    calls = await messages.open_calls(connection, claim.conversation_id)
                closed = [closing.close(call, "interrupted", self._locale) for call in calls]
                await self._writes.interrupted(turn, message, closed)
                self._status(turn, "error", message)
            else:
                async with self._database.transaction() as connection:
                    await turns.release(connection, claim)
                    await runs.set_status(connection, run.id, "error", message)
                self._activity.forget(run.id)
        except ClaimLost:
            self._let_go(run.id, stream)
            return
        except DatabaseLost as error:
            self._lost_database(claim, stream, error)
            return
        stream.publish(events_pb2.TurnEvent(error=events_pb2.Failed(message=message)))

    def _end_open_steps(self, turn: Turn) -> None:
        if turn.model_step is not None:
            turn.recorder.close(turn.model_step, error="interrupted")
        for step in turn.call_steps.values():
            if not step.HasField("ms"):
                turn.recorder.close(step, ok=False)

    def _halt_values(self, turn: Turn) -> dict[str, object]:
        return {
            "steps": turn.agent.max_steps,
            "cap": f"{turn.conversation.cost_cap_usd:.2f}",
            "minutes": turn.agent.max_minutes,
        }

    def _status(self, turn: Turn, status: RunStatus, summary: str = "") -> None:
        turn.recorder.status(status, summary)

    def _lost_database(
        self, claim: Claim, stream: TurnStream, error: Exception, *, stop: bool = False
    ) -> None:
        """Nothing more can be written: the claim is found again when Postgres takes writes."""
        log.warning("turn_lost_database", run_id=claim.run_id, error=type(error).__name__)
        if isinstance(error, WriteRefused):
            self._space.refused(error)
            sentence = self._catalogue.text(self._locale, "turn.stopped" if stop else "turn.waits_for_room")
            stream.publish(events_pb2.TurnEvent(error=events_pb2.Failed(message=sentence)))
        self.dropped.append((claim, stop))
        self._let_go(claim.run_id, stream)

    def _let_go(self, run_id: str, stream: TurnStream) -> None:
        self._activity.forget(run_id)
        stream.abandon()


def _nested_calls(log: Sequence[Message], run_ids: Collection[str]) -> int:
    """How many calls the finished scripts of these runs made."""
    records = [
        message.context
        for message in log
        if message.role == "tool" and message.context is not None and message.run_id in run_ids
    ]
    return sum(len(orjson.loads(record)["calls"]) for record in records)


def _totals(turn: Turn) -> dict[str, Any]:
    return {
        "steps": turn.model_calls,
        "spent_usd": turn.conversation.spent_usd,
        "unknown_cost_calls": turn.conversation.unknown_cost_calls,
    }

"""The turn loop: ask the model, run its calls, until it answers, waits for a person or hits a limit."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from crew.v1 import events_pb2

from services.common.wording import Catalogue
from services.orchestrator.calls import closing
from services.orchestrator.calls.contract import CallOutcome, Paused, Scope, UnknownOutcome
from services.orchestrator.calls.loop_guard import Halt, Note
from services.orchestrator.calls.pipeline import CallPipeline
from services.orchestrator.calls.registry import ToolRegistry
from services.orchestrator.calls.review import Reviewer
from services.orchestrator.calls.toolbox import Toolbox
from services.orchestrator.models.contract import AllRoutesFailed, BrokenOff, Reply, ReplyCall
from services.orchestrator.store import approvals, messages
from services.orchestrator.store.pool import Database
from services.orchestrator.store.records import Approval, StoredCall
from services.orchestrator.turns.allowance import Allowance
from services.orchestrator.turns.asking import Asking
from services.orchestrator.turns.continuing import Continuing
from services.orchestrator.turns.escalation import Escalation
from services.orchestrator.turns.fitting import NoRoom
from services.orchestrator.turns.observing import CallObserver
from services.orchestrator.turns.reviews import TurnReviews
from services.orchestrator.turns.sink import TurnSink
from services.orchestrator.turns.turn import (
    ENDING_STOPS,
    Done,
    Ending,
    Failed,
    Halted,
    Turn,
    Waiting,
    cut_off_by,
)
from services.orchestrator.turns.writes import Closing, TurnWrites

NONE_DECIDED: Mapping[str, Approval] = MappingProxyType({})


class TurnLoop:
    """Runs turns to their end or their next pause.

    Args:
        database: For what the loop reads.
        writes: For what it writes.
        asking: Makes model calls.
        allowance: Whether there is money for another model call.
        escalation: Where a turn goes that is stuck.
        continuing: What becomes of a reply that broke off.
        registry: Knows each agent's tools.
        pipeline: Takes calls through gate and host.
        catalogue: Sentences.
        observed: Told of every call that ended.
        reviewer: Has calls judged that run unattended.
        approval_ttl_seconds: Of a request in a conversation that names none.
    """

    def __init__(
        self,
        *,
        database: Database,
        writes: TurnWrites,
        asking: Asking,
        allowance: Allowance,
        escalation: Escalation,
        continuing: Continuing,
        registry: ToolRegistry,
        pipeline: CallPipeline,
        catalogue: Catalogue,
        observed: CallObserver,
        reviewer: Reviewer,
        approval_ttl_seconds: int,
    ) -> None:
        self._database = database
        self._writes = writes
        self._asking = asking
        self._allowance = allowance
        self._escalation = escalation
        self._continuing = continuing
        self._registry = registry
        self._pipeline = pipeline
        self._catalogue = catalogue
        self._observed = observed
        self._reviewer = reviewer
        self._ttl_seconds = approval_ttl_seconds

    async def run(self, turn: Turn) -> Ending:
        """Work on the turn: first on calls that wait for their result, then step by step.

        Raises:
            ClaimLost: Another process took the turn over.
            asyncio.CancelledError: The turn was stopped.
        """
        if turn.agent.review:
            toolbox = await self._registry.toolbox(turn.agent, turn.locale)
            turn.reviews = TurnReviews(turn, toolbox, self._reviewer, self._database)
        try:
            return await self._work(turn)
        finally:
            if turn.reviews is not None:
                await turn.reviews.close()

    async def _work(self, turn: Turn) -> Ending:
        if open_calls := messages.open_among(turn.log):
            decisions = await self._decisions(turn, open_calls)
            if turn.recovered and not decisions and turn.model_calls >= turn.agent.max_steps:
                # Its process died before the calls of the last step were closed.
                await self._close(turn, open_calls, "out_of_steps")
            elif ending := await self._run_calls(turn, open_calls, decisions):
                return ending
        while True:
            if steered := await self._writes.take_steers(turn):
                turn.guard.restart()
                told = events_pb2.Steer(text="\n\n".join(steered), count=len(steered))
                turn.stream.publish(events_pb2.TurnEvent(steer=told))
            if turn.model_calls >= turn.agent.max_steps:
                # Taken up after its last step, whose halt was not stored any more.
                return Halted("max_steps")
            if ending := await self._allowance.before_call(turn):
                return ending
            reply = await self._ask(turn)
            if not isinstance(reply, Reply):
                ending = reply
            elif calls := [self._stored(turn, call) for call in reply.calls]:
                ending = await self._calls_follow(turn, reply, calls)
            else:
                ending = await self._words(turn, reply)
            if ending is not None:
                return ending

    async def _ask(self, turn: Turn) -> Reply | Ending | None:
        """The model's reply, or how the turn ends without one; None when it is to be asked anew."""
        toolbox = await self._registry.toolbox(turn.agent, turn.locale)
        try:
            return await self._asking.ask(turn, toolbox, await self._foreseeing(turn, toolbox))
        except NoRoom as error:
            if error.asked:
                await self._writes.cut_off(turn, Closing("halted", "context"), error.abandoned)
            return Halted("context", error.sentence, closed=error.asked)
        except (BrokenOff, AllRoutesFailed) as error:
            if isinstance(error, AllRoutesFailed) and await self._escalation.from_failure(turn, error):
                return None
            if isinstance(error, BrokenOff) and await self._continuing.from_break(turn, error):
                return None
            sentence = error.sentence(self._catalogue, turn.locale)
            partial = error.partial_text if isinstance(error, BrokenOff) else ""
            await self._writes.cut_off(turn, Closing("error", sentence), error.abandoned, partial)
            return Failed(sentence, closed=True)

    async def _foreseeing(self, turn: Turn, toolbox: Toolbox) -> Callable[[str, str], None] | None:
        """What begins reviews while the model streams; None for an agent without any (PIP-101)."""
        reviews = turn.reviews
        if reviews is None:
            return None
        reviews.toolbox = toolbox
        scope = await self._scope(turn, NONE_DECIDED)
        return lambda name, arguments: reviews.foresee(self._pipeline.foresee(scope, name, arguments))

    async def _record(
        self,
        turn: Turn,
        reply: Reply,
        calls: Sequence[StoredCall] = (),
        *,
        note: str = "",
        closing: Closing | None = None,
    ) -> bool:
        """Store and show a reply with what follows from it; whether the run is closed now."""
        message, closed = await self._writes.reply(turn, reply, calls, note=note, closing=closing)
        turn.model_calls += 1
        if reply.text:
            turn.say(reply.text)
        self._asking.said(turn, message)
        await self._allowance.charged(turn)
        return closed

    async def _words(self, turn: Turn, reply: Reply) -> Ending | None:
        turn.guard.restart()
        steps = turn.model_calls + 1
        steps_left = steps < turn.agent.max_steps
        if reply.text.strip():
            closing = Closing("done", _summary(reply.text), unless_steered=steps_left)
            if await self._record(turn, reply, closing=closing):
                return Done("\n\n".join(turn.said))
        elif steps_left and not turn.asked_for_words:
            # A reply without a word is asked for once more; the second ends the turn (FLD-006).
            turn.asked_for_words = True
            await self._record(
                turn, reply, note=self._catalogue.text(turn.locale, "prompt.turn.say_something")
            )
        else:
            sentence = self._catalogue.text(turn.locale, "turn.without_a_word", steps=steps)
            await self._record(turn, reply, closing=Closing("error", sentence))
            return Failed(sentence, closed=True)
        return None

    async def _calls_follow(self, turn: Turn, reply: Reply, calls: Sequence[StoredCall]) -> Ending | None:
        await self._record(turn, reply, calls)
        if turn.model_calls >= turn.agent.max_steps:
            await self._close(turn, calls, "out_of_steps")
            return Halted("max_steps")
        if halt := turn.guard.before(calls):
            handed_over = await self._escalation.possible(turn)
            await self._close(turn, calls, "handed_over" if handed_over else "loop")
            return await self._halt(turn, halt)
        return await self._run_calls(turn, calls)

    async def _run_calls(
        self, turn: Turn, calls: Sequence[StoredCall], decisions: Mapping[str, Approval] = NONE_DECIDED
    ) -> Ending | None:
        scope = await self._scope(turn, decisions)
        end = await self._pipeline.run(scope, calls, TurnSink(turn, self._writes, self._observed))
        turn.recovered = False
        if turn.reviews is not None:
            await turn.reviews.settle()
        if isinstance(end, Paused):
            ttl = turn.conversation.approval_ttl_seconds or self._ttl_seconds
            return Waiting(await self._writes.pause(turn, end.call, end.ask, ttl))
        if turn.nested_budget.exhausted:
            return Halted("nested_calls")
        if end.terminate:
            text = "\n\n".join(turn.said)
            await self._writes.finish(turn, "done", _summary(text))
            return Done(text)
        match turn.guard.after(end.outcomes):
            case Halt() as halt:
                return await self._halt(turn, halt)
            case Note() as note:
                await self._writes.note(turn, note.text(turn.locale))
            case None:
                pass
        return None

    async def _halt(self, turn: Turn, halt: Halt) -> Ending | None:
        """End the turn as the guard says, or hand it to the escalation route (TRN-175)."""
        if not await self._escalation.possible(turn):
            return Halted(halt.reason)
        await self._escalation.from_loop(turn)
        return None

    async def _close(self, turn: Turn, calls: Sequence[StoredCall], why: closing.Why) -> None:
        sink = TurnSink(turn, self._writes, self._observed)
        outcomes: list[CallOutcome] = []
        for call in calls:
            await sink.announced(call)
            outcome = closing.close(call, why, turn.locale)
            await sink.ended(outcome)
            outcomes.append(outcome)
        await sink.store(outcomes)

    async def _scope(self, turn: Turn, decisions: Mapping[str, Approval]) -> Scope:
        return Scope(
            conversation=turn.conversation,
            agent=turn.agent,
            toolbox=await self._registry.toolbox(turn.agent, turn.locale),
            run_id=turn.run_id,
            source=turn.source,
            locale=turn.locale,
            decisions=decisions,
            recovered=turn.recovered,
            budget_left_usd=turn.budget_left_usd,
            reread=lambda: self._writes.reread(turn),
            unknown_outcomes=await self._unknown_outcomes(turn),
            reviews=turn.reviews,
            leave_open=lambda: turn.stop_reason not in ENDING_STOPS,
            cut_off_by=lambda: cut_off_by(turn),
            nested_budget=turn.nested_budget,
            attended=turn.attended,
        )

    async def _unknown_outcomes(self, turn: Turn) -> Sequence[UnknownOutcome]:
        async with self._database.connection() as connection:
            found = await messages.unknown_outcomes(connection, turn.conversation_id)
        return [UnknownOutcome(tool, sha256) for tool, sha256 in found]

    async def _decisions(self, turn: Turn, calls: Sequence[StoredCall]) -> Mapping[str, Approval]:
        async with self._database.connection() as connection:
            return await approvals.unbegun(connection, turn.conversation_id, [call.id for call in calls])

    def _stored(self, turn: Turn, call: ReplyCall) -> StoredCall:
        broken = call.broken
        return StoredCall(
            id=str(uuid.uuid4()),
            name=call.name,
            arguments=call.arguments,
            provider_id=call.provider_id,
            broken=self._catalogue.text(turn.locale, broken.key, **broken.values) if broken else None,
            cut_off=call.cut_off,
        )


def _summary(text: str) -> str:
    """The start of a reply, for lists of runs (TRN-277)."""
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:199]}…"

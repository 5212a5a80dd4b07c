"""The turn loop: ask the model, run its calls, until it answers, waits for a person or hits a limit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from services.common.wording import Catalogue
from services.orchestrator.calls import closing
from services.orchestrator.calls.contract import CallOutcome, Paused, Scope, UnknownOutcome
from services.orchestrator.calls.loop_guard import Halt, Note
from services.orchestrator.calls.pipeline import CallPipeline
from services.orchestrator.calls.registry import ToolRegistry
from services.orchestrator.models.contract import (
    AllRoutesFailed,
    BrokenOff,
    Reply,
    ReplyCall,
    TooLargeForModel,
)
from services.orchestrator.store import approvals, messages
from services.orchestrator.store.pool import Database
from services.orchestrator.store.records import Approval, StoredCall
from services.orchestrator.turns.asking import Asking
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
from services.orchestrator.turns.writes import TurnWrites

NONE_DECIDED: Mapping[str, Approval] = MappingProxyType({})


class TurnLoop:
    """Runs turns to their end or their next pause.

    Args:
        database: For what the loop reads.
        writes: For what it writes.
        asking: Makes model calls.
        registry: Knows each agent's tools.
        pipeline: Takes calls through gate and host.
        catalogue: Sentences.
        approval_ttl_seconds: Of a request in a conversation that names none.
    """

    def __init__(
        self,
        *,
        database: Database,
        writes: TurnWrites,
        asking: Asking,
        registry: ToolRegistry,
        pipeline: CallPipeline,
        catalogue: Catalogue,
        approval_ttl_seconds: int,
    ) -> None:
        self._database = database
        self._writes = writes
        self._asking = asking
        self._registry = registry
        self._pipeline = pipeline
        self._catalogue = catalogue
        self._ttl_seconds = approval_ttl_seconds

    async def run(self, turn: Turn) -> Ending:
        """Work on the turn: first on calls that wait for their result, then step by step.

        Raises:
            ClaimLost: Another process took the turn over.
            asyncio.CancelledError: The turn was stopped.
        """
        if open_calls := messages.open_among(turn.log):
            decisions = await self._decisions(turn, open_calls)
            if ending := await self._run_calls(turn, open_calls, decisions):
                return ending
        while True:
            if await self._writes.take_steers(turn):
                turn.guard.restart()
            if turn.conversation.over_budget and (await self._writes.reread(turn)).over_budget:
                return Halted("budget")
            reply, failure = await self._ask(turn)
            if reply is None:
                assert failure is not None
                return failure
            calls = [self._stored(turn, call) for call in reply.calls]
            await self._record(turn, reply, calls)
            ending = await (self._after_calls(turn, calls) if calls else self._after_words(turn, reply))
            if ending is not None:
                return ending

    async def _ask(self, turn: Turn) -> tuple[Reply | None, Ending | None]:
        toolbox = await self._registry.toolbox(turn.agent, turn.locale)
        try:
            return await self._asking.ask(turn, toolbox), None
        except TooLargeForModel as error:
            await self._writes.failed_call(turn, error.abandoned, "")
            sentence = error.sentence(self._catalogue, turn.locale)
            return None, Halted("context", sentence)
        except BrokenOff as error:
            await self._writes.failed_call(turn, error.abandoned, error.partial_text)
            return None, Failed(error.sentence(self._catalogue, turn.locale))
        except AllRoutesFailed as error:
            await self._writes.failed_call(turn, error.abandoned, "")
            return None, Failed(error.sentence(self._catalogue, turn.locale))

    async def _record(self, turn: Turn, reply: Reply, calls: Sequence[StoredCall]) -> None:
        message = await self._writes.reply(turn, reply, calls)
        turn.model_calls += 1
        turn.shown, turn.served_by, turn.model_step = "", None, None
        if reply.text:
            turn.said.append(reply.text)
        self._asking.said(turn, message)

    async def _after_words(self, turn: Turn, reply: Reply) -> Ending | None:
        turn.guard.restart()
        if not reply.text.strip():
            # A reply without a word is asked for once more; the second ends the turn (FLD-006).
            out_of_steps = turn.model_calls >= turn.agent.max_steps
            if turn.asked_for_words or out_of_steps:
                sentence = self._catalogue.text(turn.locale, "turn.without_a_word", steps=turn.model_calls)
                return Failed(sentence)
            turn.asked_for_words = True
            await self._writes.note(turn, self._catalogue.text(turn.locale, "prompt.turn.say_something"))
            return None
        text = "\n\n".join(turn.said)
        steps_left = turn.model_calls < turn.agent.max_steps
        if await self._writes.finish(turn, "done", _summary(reply.text), unless_steered=steps_left):
            return Done(text)
        return None

    async def _after_calls(self, turn: Turn, calls: Sequence[StoredCall]) -> Ending | None:
        if turn.model_calls >= turn.agent.max_steps:
            await self._close(turn, calls, "out_of_steps")
            return Halted("max_steps")
        if halt := turn.guard.before(calls):
            await self._close(turn, calls, "loop")
            return Halted(halt.reason)
        return await self._run_calls(turn, calls)

    async def _run_calls(
        self, turn: Turn, calls: Sequence[StoredCall], decisions: Mapping[str, Approval] = NONE_DECIDED
    ) -> Ending | None:
        scope = await self._scope(turn, decisions)
        end = await self._pipeline.run(scope, calls, TurnSink(turn, self._writes))
        turn.recovered = False
        if isinstance(end, Paused):
            ttl = turn.conversation.approval_ttl_seconds or self._ttl_seconds
            return Waiting(await self._writes.pause(turn, end.call, end.ask, ttl))
        if end.terminate:
            text = "\n\n".join(turn.said)
            await self._writes.finish(turn, "done", _summary(text))
            return Done(text)
        match turn.guard.after(end.outcomes):
            case Halt(reason=reason):
                return Halted(reason)
            case Note() as note:
                await self._writes.note(turn, note.text(turn.locale))
            case None:
                pass
        return None

    async def _close(self, turn: Turn, calls: Sequence[StoredCall], why: closing.Why) -> None:
        sink = TurnSink(turn, self._writes)
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
            leave_open=lambda: turn.stop_reason not in ENDING_STOPS,
            cut_off_by=lambda: cut_off_by(turn),
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

"""Replacing older turns in the prompt by one summary; the log is not changed (FLD-003)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Literal

from crew.v1 import events_pb2, runs_pb2

from services.common.wording import Catalogue
from services.orchestrator.context.older_turns import OlderTurns, told_summary, transcript
from services.orchestrator.context.sizes import CHARS_PER_TOKEN
from services.orchestrator.models.contract import (
    ChatMessage,
    Completed,
    ModelError,
    ModelRequest,
    Reply,
    Route,
    Served,
    Started,
)
from services.orchestrator.models.facade import Models
from services.orchestrator.store import compactions, turns
from services.orchestrator.store.compactions import Compaction
from services.orchestrator.store.pool import Database
from services.orchestrator.turns.charging import charge_side_call
from services.orchestrator.turns.turn import Turn

# Which part of a window what is to be summarised may fill.
_TRANSCRIPT_SHARE = 0.5
_LEAST_TRANSCRIPT_CHARS = 2_000
# Asked of the model, and allowed to it: some count their thoughts as output.
_SUMMARY_WORDS = 900
_MOST_OUTPUT_TOKENS = 8_192

Why = Literal["full", "refused"]


class Compacting:
    """Asks for summaries and lets them stand.

    Args:
        database: Where to.
        models: Who writes them: the routes of the turn.
        catalogue: Sentences.
    """

    def __init__(self, *, database: Database, models: Models, catalogue: Catalogue) -> None:
        self._database = database
        self._models = models
        self._catalogue = catalogue

    async def compact(
        self, turn: Turn, older: OlderTurns, why: Why, window_tokens: int, abandoned: Sequence[Route] = ()
    ) -> bool:
        """Let one summary stand for `older` from the next prompt on; False when none came.

        What it cost is charged to the conversation and the run, whether it is of use or not.

        Args:
            turn: Whose routes are asked; its claim is held.
            older: What is summarised.
            why: For the run's step.
            window_tokens: Of the route that the prompt is made smaller for.
            abandoned: Calls of unknown cost that led here, recorded in the same transaction.
        """
        step = turn.recorder.open("compacted", name=why)
        # A stop finds it here, and what it may have cost.
        turn.model_step = step
        reply, error, lost = await self._ask(turn, older, step, window_tokens)
        turn.served_by = None
        compaction = None
        if reply is not None and reply.text.strip():
            compaction = Compaction(
                upto_seq=older.upto_seq,
                upto_turn=older.upto_turn,
                made_after_seq=turn.log[-1].seq,
                told=told_summary(reply.text.strip(), older, turn.locale),
            )
        self._close(turn, step, reply, compaction, error)
        await self._write(turn, step, reply, compaction, [*abandoned, *lost])
        turn.model_step = None
        if compaction is None:
            return False
        turn.compaction = compaction
        event = events_pb2.Compacted(turns=compaction.upto_turn, text=step.text)
        turn.stream.publish(events_pb2.TurnEvent(compacted=event))
        return True

    async def _ask(
        self, turn: Turn, older: OlderTurns, step: runs_pb2.RunStep, window_tokens: int
    ) -> tuple[Reply | None, str | None, Sequence[Route]]:
        """The reply, or why there is none, and which calls were left at unknown cost."""
        try:
            async with aclosing(self._models.stream(self._request(turn, older, window_tokens))) as events:
                async for event in events:
                    match event:
                        case Started(route=route):
                            step.route = str(route)
                            turn.served_by = None
                        case Served(route=route):
                            turn.served_by = route
                        case Completed(reply=reply):
                            return reply, None, reply.abandoned
                        case _:
                            # Text and thoughts of a summary are nobody's to watch.
                            pass
        except ModelError as failed:
            return None, failed.sentence(self._catalogue, turn.locale), failed.abandoned
        raise AssertionError("a stream of model events ends with Completed or raises")

    def _request(self, turn: Turn, older: OlderTurns, window_tokens: int) -> ModelRequest:
        room = round(window_tokens * CHARS_PER_TOKEN * _TRANSCRIPT_SHARE)
        text = transcript(older, turn.agent, turn.locale, max(room, _LEAST_TRANSCRIPT_CHARS))
        ask = self._catalogue.text(turn.locale, "prompt.compact.ask", turns=older.upto_turn)
        return ModelRequest(
            routes=turn.routes,
            system=self._catalogue.text(
                turn.locale, "prompt.compact.instructions", name=turn.agent.name, words=_SUMMARY_WORDS
            ),
            messages=[ChatMessage("user", f"{ask}\n{text}")],
            agent_id=turn.agent.id,
            purpose="compact",
            max_output_tokens=min(_MOST_OUTPUT_TOKENS, max(1, window_tokens // 4)),
        )

    def _close(
        self,
        turn: Turn,
        step: runs_pb2.RunStep,
        reply: Reply | None,
        compaction: Compaction | None,
        error: str | None,
    ) -> None:
        if compaction is not None:
            step.text = self._catalogue.text(turn.locale, "turn.compacted", turns=compaction.upto_turn)
        elif error is None:
            error = self._catalogue.text(turn.locale, "turn.not_compacted")
        if reply is None:
            turn.recorder.close(step, error=error)
            return
        turn.recorder.close(
            step,
            ms=reply.ms,
            route=str(reply.route),
            error=error,
            cost_usd=reply.cost_usd,
            cost_estimated=reply.cost_estimated or None,
            prompt_tokens=reply.usage.prompt_tokens,
            completion_tokens=reply.usage.completion_tokens,
            cached_tokens=reply.usage.cached_tokens,
            reasoning_tokens=reply.usage.reasoning_tokens,
        )

    async def _write(
        self,
        turn: Turn,
        step: runs_pb2.RunStep,
        reply: Reply | None,
        compaction: Compaction | None,
        abandoned: Sequence[Route],
    ) -> None:
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            if compaction is not None:
                await compactions.add(connection, turn.conversation_id, turn.run_id, compaction)
            charged = await charge_side_call(connection, turn, "compact", reply, abandoned)
            await turn.recorder.write(connection, step)
        charged.show(turn)

"""The reviews of one turn: begun while the model streams, recorded when their call is judged."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable
from dataclasses import dataclass

import structlog
from crew.v1 import runs_pb2

from services.common.times import utc_now
from services.orchestrator.agents.profile import ReviewRule
from services.orchestrator.calls.review import Judgement, Reviewer, ReviewRequest, words
from services.orchestrator.calls.review.contract import Seen
from services.orchestrator.calls.toolbox import Toolbox
from services.orchestrator.context.prompt import assemble
from services.orchestrator.context.texts import read_texts
from services.orchestrator.models.contract import Route, ToolDeclaration
from services.orchestrator.money.account import Account
from services.orchestrator.store import conversations, messages, runs, turns
from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.store.records import Message, StoredCall
from services.orchestrator.turns.turn import Turn

# Reviews that are begun before the reply they are for is whole.
MOST_BEGUN = 16

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Begun:
    step: runs_pb2.RunStep
    task: asyncio.Task[Judgement]


class TurnReviews:
    """The `Reviews` of a turn.

    Args:
        turn: Whose calls are judged.
        toolbox: What its agent holds.
        reviewer: Asks the second model.
        database: Where verdicts and costs are recorded.
    """

    def __init__(self, turn: Turn, toolbox: Toolbox, reviewer: Reviewer, database: Database) -> None:
        self.toolbox = toolbox
        self._turn = turn
        self._reviewer = reviewer
        self._database = database
        self._begun: dict[tuple[str, bytes, ReviewRule], list[_Begun]] = {}
        self._foreseeing: set[asyncio.Task[None]] = set()
        self._denials = 0

    @property
    def denials(self) -> int:
        """How many of the last judgements, in a row, were denials (PIP-102)."""
        return self._denials

    def foresee(self, find: Awaitable[ReviewRequest | None]) -> None:
        """Begin the review that a streamed call will need, if `find` says that it will need one."""

        async def begin() -> None:
            request = await find
            if request is not None and sum(map(len, self._begun.values())) < MOST_BEGUN:
                self._begun.setdefault(request.key, []).append(self._begin(request))

        task = asyncio.create_task(begin(), name=f"foresee {self._turn.run_id}")
        self._foreseeing.add(task)
        task.add_done_callback(self._foreseen)

    async def judge(self, call: StoredCall, request: ReviewRequest) -> Judgement:
        """The judgement on `call`, recorded with what it cost.

        Raises:
            ClaimLost: Another process took the turn over.
            asyncio.CancelledError: The turn was stopped.
        """
        while self._foreseeing:
            await asyncio.wait(set(self._foreseeing))
        waiting = self._begun.setdefault(request.key, [])
        if not waiting:
            waiting.append(self._begin(request))
        # Taken from the list when it has answered: a stop on the way leaves it to `close`.
        begun = waiting[0]
        begun.step.tool_call_id = call.id
        judgement = await asyncio.shield(begun.task)
        waiting.remove(begun)
        await self._record(begun, judgement)
        self._denials = self._denials + 1 if judgement.verdict == "deny" else 0
        return judgement

    async def settle(self) -> None:
        """End what was begun for calls that did not come to it, and record what it cost.

        Raises:
            ClaimLost: Another process took the turn over.
        """
        for begun, judgement in await self._left_over():
            await self._record(begun, judgement)

    async def close(self) -> None:
        """As `settle` for a turn that is over or not ours: the money alone is recorded. Never raises."""
        for _, judgement in await self._left_over():
            try:
                async with self._database.transaction() as connection:
                    await self._charge(connection, judgement)
            except Exception as error:
                _log.warning("review_cost_lost", run=self._turn.run_id, error=type(error).__name__)

    def _begin(self, request: ReviewRequest) -> _Begun:
        # The messages are those of now: the log may have grown when the model is asked.
        log = list(self._turn.log)
        step = self._turn.recorder.open("review", name=request.tool, route=request.rule.route)
        task = asyncio.create_task(self._judged(request, log), name=f"review {self._turn.run_id}")
        return _Begun(step, task)

    async def _judged(self, request: ReviewRequest, log: list[Message]) -> Judgement:
        turn = self._turn
        # Those that the first model was asked with, where it has been asked.
        texts = turn.texts or await read_texts(turn.agent)
        seen = Seen(texts.policy_for(turn.agent, turn.locale))
        if request.rule.sees == "conversation":
            specs = self.toolbox.specs
            prompt = assemble(
                turn.agent,
                specs,
                _asked_with(log),
                turn.locale,
                utc_now(),
                texts=texts,
                compaction=turn.compaction,
            )
            declared = [ToolDeclaration(spec.name, spec.description, spec.parameters) for spec in specs]
            seen = Seen(seen.policy, prompt.messages, declared)
        account = Account(turn.agent.id, turn.conversation_id, turn.run_id, turn.source)
        return await self._reviewer.judge(request, seen, account, attended=turn.attended, locale=turn.locale)

    def _foreseen(self, task: asyncio.Task[None]) -> None:
        self._foreseeing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The gate asks for the review again when the call's turn comes.
            _log.warning("review_not_foreseen", run=self._turn.run_id, error=type(error).__name__)

    async def _left_over(self) -> list[tuple[_Begun, Judgement]]:
        """End every review that is under way; what is known of each."""
        begun = [each for waiting in self._begun.values() for each in waiting]
        self._begun.clear()
        tasks: list[asyncio.Task[None] | asyncio.Task[Judgement]] = [
            *self._foreseeing,
            *(each.task for each in begun),
        ]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        return [(each, _outcome(each)) for each in begun]

    async def _record(self, begun: _Begun, judgement: Judgement) -> None:
        turn = self._turn
        turn.recorder.close(
            begun.step,
            ms=judgement.ms,
            verdict=judgement.verdict,
            text=words.said(judgement, turn.locale),
            cost_usd=judgement.cost_usd,
            prompt_tokens=judgement.usage.prompt_tokens,
            completion_tokens=judgement.usage.completion_tokens,
        )
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            await turn.recorder.write(connection, begun.step)
            spent_usd, unknown_calls = await self._charge(connection, judgement)
        turn.recorder.spent(judgement.cost_usd, judgement.unknown_cost_calls)
        turn.conversation = dataclasses.replace(
            turn.conversation, spent_usd=spent_usd, unknown_cost_calls=unknown_calls
        )

    async def _charge(self, connection: Connection, judgement: Judgement) -> tuple[float, int]:
        """Conversation and run; the ledger has it already. What the conversation has spent then."""
        cost, unknown = judgement.cost_usd, judgement.unknown_cost_calls
        await runs.add(connection, self._turn.run_id, cost_usd=cost, unknown_calls=unknown)
        return await conversations.charge(
            connection, self._turn.conversation_id, cost_usd=cost, unknown_calls=unknown
        )


def _asked_with(log: list[Message]) -> list[Message]:
    """What the first model was asked with: the log without the reply whose calls are open."""
    if not messages.open_among(log):
        return log
    reply = max(place for place, message in enumerate(log) if message.role == "assistant")
    return log[:reply]


def _outcome(begun: _Begun) -> Judgement:
    if begun.task.cancelled() or begun.task.exception() is not None:
        return Judgement("none", Route.parse(begun.step.route), silence="dropped")
    return begun.task.result()

"""What a script asks for, counted, judged and answered (SCR-042 to 096, 152 to 171, 265).

The sandbox counts too, for its own sentences. Here everything is counted again: a script that is past
a number, whatever its sandbox says, is told to stop.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from crew.v1 import script_sandbox_pb2 as pb

from services.common.toolhost import exact_json
from services.common.toolhost.contract import Run, ToolResult
from services.common.toolhost.nested import NestedCall, ScriptRecord
from services.common.wording import Locale, load
from services.orchestrator.calls.inner import InnerCalls
from services.orchestrator.calls.steps import step_arguments, step_output
from services.orchestrator.money.account import Account
from services.orchestrator.money.side_calls import BudgetSpent
from services.orchestrator.scripts import lookups
from services.orchestrator.scripts.calling import Asked, Calling, Outcome
from services.orchestrator.scripts.labels import folded
from services.orchestrator.scripts.limits import (
    ARGUMENT_CHARS,
    BATCH_ITEMS,
    FEWEST_LABELS,
    LABEL_CHARS,
    LOOKUP_CHARS,
    MOST_CALLS,
    MOST_LABELS,
    MOST_LOOKUPS,
    MOST_QUESTIONS,
    QUESTION_CHARS,
    SEARCH_MOST,
    SUMMARY_MOST,
)
from services.orchestrator.scripts.notebook import Notebook
from services.orchestrator.scripts.questions import Asker, Question, Questions
from services.orchestrator.scripts.reach import Reach
from services.orchestrator.scripts.session import ProtocolFault, Refusal
from services.orchestrator.store.scripts import Write


@dataclass(slots=True)
class _Counts:
    calls: int = 0
    questions: int = 0
    lookups: int = 0
    store_opened: bool = False


@dataclass(slots=True)
class _Card:
    """What the script's calls became, by their number in the script, from 1."""

    calls: dict[int, NestedCall] = field(default_factory=dict)
    received_chars: int = 0
    # Of these, those made before a restart: charged and told of then.
    restored: frozenset[int] = frozenset()


class ScriptRequests:
    """Answers the requests of one script.

    Args:
        run: The `tool_script` call.
        inner: What it may do through the orchestrator.
        reach: What it may call.
        questions: Asks its agent's model.
        notebook: What it keeps; being made while the script begins.
    """

    def __init__(
        self,
        run: Run,
        inner: InnerCalls,
        reach: Reach,
        questions: Questions,
        notebook: asyncio.Future[Notebook],
    ) -> None:
        self._run = run
        self._inner = inner
        self._reach = reach
        self._questions = questions
        self._notebook = notebook
        self._locale: Locale = run.context.locale
        self._words = load("orchestrator")
        self._counts = _Counts()
        self._card = _Card()
        # Of the agent, when the script opened its store.
        self._generation: int | None = None
        self._calling = Calling(inner, reach, run.context.call_id, self._locale)

    async def kept(self, writes: Sequence[Write]) -> None:
        """Keep what the script stored: see `Notebook.apply`."""
        notebook = await self._notebook
        if self._generation is not None:
            notebook.opened_before(self._generation)
        await notebook.apply(writes)

    def on(self, result: ToolResult, printed_chars: int) -> ToolResult:
        """`result` with what the script did: its calls in the written order, and their price (SCR-283).

        A writing call whose end nobody knows makes the script one whose effect nobody knows.
        """
        calls = [self._card.calls[number] for number in sorted(self._card.calls)]
        fresh = [call for number, call in self._card.calls.items() if number not in self._card.restored]
        prices = [call.cost_usd for call in fresh if call.cost_usd is not None]
        return replace(
            result,
            outcome="unknown" if self._calling.unknown else result.outcome,
            cost_usd=sum(prices) if prices else None,
            unknown_cost_calls=sum(call.unknown_cost_calls for call in fresh),
            script=ScriptRecord(calls, self._card.received_chars, printed_chars),
        )

    def progress(self) -> str:
        """What was counted so far, as JSON text for `restore`."""
        return exact_json.dumps(
            {
                "counts": asdict(self._counts),
                "calls": [[number, call.fields()] for number, call in self._card.calls.items()],
                "received_chars": self._card.received_chars,
                "room": self._calling.room_used,
                "generation": self._generation,
            }
        )

    def restore(self, progress: str) -> bool:
        """Count on from `progress` of the same script; False, with nothing changed, when it can not.

        Its calls are charged and told of already, so they are on the card and cost nothing again.
        """
        try:
            kept = json.loads(progress)
            counts = _Counts(**kept["counts"])
            calls = {int(number): NestedCall(**fields) for number, fields in kept["calls"]}
            received, room, generation = kept["received_chars"], kept["room"], kept["generation"]
        except (ValueError, KeyError, TypeError):
            return False
        if self._calling.take(room) is not None:
            return False
        self._counts, self._generation = counts, generation
        self._card = _Card(calls, received, restored=frozenset(calls))
        return True

    def restart(self) -> None:
        """Forget everything that was counted: the script begins at its first line."""
        self._calling.give_back_all()
        self._counts, self._card, self._generation = _Counts(), _Card(), None

    async def answer(self, request: pb.FromSandbox) -> pb.ToSandbox | Refusal:
        """See `Answering`."""
        # No call of the script comes before its agent's generation is known (SCR-338).
        await self._notebook
        try:
            match request.WhichOneof("message"):
                case "tool_call":
                    return await self._call(request.tool_call)
                case "batch_call":
                    return await self._batch(request.batch_call)
                case "lookup":
                    return self._look_up(request.lookup)
                case "ask_model":
                    return await self._ask(request.ask_model)
                case "open_store":
                    return await self._open_store(request.open_store)
                case other:
                    raise ProtocolFault(f"no request: {other}")
        except asyncio.CancelledError:
            await self._calling.stop()
            raise

    async def _call(self, request: pb.ToolCallRequest) -> pb.ToSandbox | Refusal:
        refusal = self._count(1)
        if refusal is not None:
            return refusal
        if len(request.args_json) > ARGUMENT_CHARS:
            return self._refuse("limit.arguments", limit=ARGUMENT_CHARS)
        asked = [Asked(self._counts.calls, request.name, _checked(request.args_json))]
        outcomes = await self._calling.all_of(asked, self._ended)
        if isinstance(outcomes, Refusal):
            return outcomes
        outcome = outcomes[0]
        return pb.ToSandbox(call_result=pb.CallResult(seq=request.seq, ok=outcome.ok, text=outcome.text))

    async def _batch(self, request: pb.BatchCallRequest) -> pb.ToSandbox | Refusal:
        if not 1 <= len(request.items) <= BATCH_ITEMS:
            raise ProtocolFault("a batch of no allowed size")
        first = self._counts.calls + 1
        refusal = self._count(len(request.items))
        if refusal is not None:
            return refusal
        if any(len(item.args_json) > ARGUMENT_CHARS for item in request.items):
            return self._refuse("limit.arguments", limit=ARGUMENT_CHARS)
        asked = [
            Asked(number, item.name, _checked(item.args_json))
            for number, item in enumerate(request.items, first)
        ]
        outcomes = await self._calling.all_of(asked, self._ended)
        if isinstance(outcomes, Refusal):
            return outcomes
        items = [pb.BatchItemResult(ok=outcome.ok, text=outcome.text) for outcome in outcomes]
        return pb.ToSandbox(batch_result=pb.BatchResult(seq=request.seq, items=items))

    async def _ended(self, outcome: Outcome) -> None:
        """One call ended: on the card, and told at once (SCR-282)."""
        self._card.received_chars += len(outcome.text)
        self._card.calls[outcome.number] = outcome.entry
        await self._run.nested(outcome.entry)

    def _look_up(self, request: pb.LookupRequest) -> pb.ToSandbox:
        self._counts.lookups += 1
        seq, tools = request.seq, self._reach.callable
        if self._counts.lookups > MOST_LOOKUPS:
            return self._no_lookup(seq, "too_many", limit=MOST_LOOKUPS)
        if len(request.text) > LOOKUP_CHARS:
            return self._no_lookup(seq, "too_long", limit=LOOKUP_CHARS)
        value: object
        match request.kind:
            case pb.LOOKUP_KIND_NAMES:
                value = tools.names
            case pb.LOOKUP_KIND_SEARCH:
                if not 1 <= request.limit <= SEARCH_MOST:
                    return self._no_lookup(seq, "limit", most=SEARCH_MOST)
                value = lookups.search(tools, request.text, request.limit)
            case pb.LOOKUP_KIND_DESCRIBE:
                held = tools.find(request.text)
                if held is None:
                    error = self._reach.refusal(request.text, self._locale) or self._reach.unknown(
                        request.text, self._locale
                    )
                    return _lookup_error(seq, error)
                value = lookups.describe(held.spec, self._locale)
            case _:
                raise ProtocolFault("a look-up of no kind")
        text = exact_json.dumps(value)
        return pb.ToSandbox(lookup_result=pb.LookupResult(seq=seq, ok=True, value_json=text))

    def _no_lookup(self, seq: int, key: str, **values: object) -> pb.ToSandbox:
        return _lookup_error(seq, self._words.text(self._locale, f"scripts.lookup.{key}", **values))

    async def _ask(self, request: pb.AskModelRequest) -> pb.ToSandbox | Refusal:
        question = _question(request)
        self._counts.questions += 1
        refusal = self._count(1)
        if refusal is not None:
            return refusal
        if self._counts.questions > MOST_QUESTIONS:
            return self._refuse("limit.questions", limit=MOST_QUESTIONS)
        if not self._inner.agent.script_llm:
            text = self._words.text(self._locale, "scripts.llm.not_here")
            return pb.ToSandbox(model_result=pb.ModelResult(seq=request.seq, ok=False, text=text))
        conversation = await self._inner.conversation()
        if conversation.over_budget:
            return self._refuse("cost_cap")
        if refusal := self._calling.take(1):
            return refusal
        context = self._run.context
        account = Account(context.agent_id, context.conversation_id, context.run_id, source=context.source)
        asker = Asker(self._inner.agent, account, self._inner.attended, self._locale)
        began = time.monotonic()
        try:
            answer = await self._questions.ask(question, asker)
        except BudgetSpent:
            return self._refuse("budget_spent")
        entry = NestedCall(
            name=f"llm.{question.kind}",
            arguments=step_arguments(_arguments(question), self._locale),
            ok=answer.ok,
            output=step_output(answer.shown, ok=answer.ok),
            ms=round((time.monotonic() - began) * 1000),
            cost_usd=answer.cost_usd,
            metered=True,
        )
        await self._ended(Outcome(self._counts.calls, answer.ok, answer.text, entry))
        return pb.ToSandbox(model_result=pb.ModelResult(seq=request.seq, ok=answer.ok, text=answer.text))

    async def _open_store(self, request: pb.OpenStoreRequest) -> pb.ToSandbox:
        if self._counts.store_opened:
            raise ProtocolFault("the store was opened before")
        self._counts.store_opened = True
        notebook = await self._notebook
        snapshot = await notebook.open()
        self._generation = notebook.generation
        entries = [pb.StoreEntry(key=key, json=text) for key, text in snapshot.entries]
        return pb.ToSandbox(
            store_snapshot=pb.StoreSnapshot(seq=request.seq, entries=entries, used_chars=snapshot.chars)
        )

    def _count(self, calls: int) -> Refusal | None:
        """Count calls, whether they run or not; a refusal when there are too many (SCR-056)."""
        if self._counts.calls + calls > MOST_CALLS:
            return self._refuse("limit.calls", limit=MOST_CALLS)
        self._counts.calls += calls
        return None

    def _refuse(self, key: str, **values: object) -> Refusal:
        return Refusal(self._words.text(self._locale, f"scripts.refused.{key}", **values))


def _checked(arguments: str) -> str:
    """Arguments that are a JSON object, as the sandbox promises."""
    try:
        exact_json.loads_object(arguments)
    except ValueError:
        raise ProtocolFault("arguments that are no JSON object") from None
    return arguments or "{}"


def _question(request: pb.AskModelRequest) -> Question:
    """A question whose parameters are what the sandbox lets through (SCR-140 to 142)."""
    if not 0 < len(request.text) <= QUESTION_CHARS:
        raise ProtocolFault("a question of no allowed length")
    match request.kind:
        case pb.QUESTION_KIND_CLASSIFY:
            labels = tuple(request.labels)
            fit = all(0 < len(label) <= LABEL_CHARS and folded(label) for label in labels)
            different = len({folded(label) for label in labels}) == len(labels)
            if not (FEWEST_LABELS <= len(labels) <= MOST_LABELS and fit and different):
                raise ProtocolFault("labels that are not allowed")
            return Question("classify", request.text, labels=labels)
        case pb.QUESTION_KIND_SUMMARISE:
            if not 1 <= request.max_chars <= SUMMARY_MOST:
                raise ProtocolFault("a length that is not allowed")
            return Question("summarise", request.text, max_chars=request.max_chars)
        case _:
            raise ProtocolFault("a question of no kind")


def _arguments(question: Question) -> str:
    """As the run card shows them (SCR-169)."""
    shown: dict[str, object] = {"text": question.text}
    if question.kind == "classify":
        shown["labels"] = list(question.labels)
    else:
        shown["max_chars"] = question.max_chars
    return json.dumps(shown, ensure_ascii=False)


def _lookup_error(seq: int, text: str) -> pb.ToSandbox:
    return pb.ToSandbox(lookup_result=pb.LookupResult(seq=seq, ok=False, error=text))

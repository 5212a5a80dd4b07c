"""One turn while it is worked on here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from crew.v1 import runs_pb2

from services.common.toolhost.nested import NestedCall
from services.common.wording import Locale
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls.budget import NestedBudget
from services.orchestrator.calls.contract import CallOutcome, CutOff
from services.orchestrator.calls.loop_guard import LoopGuard
from services.orchestrator.context.texts import AgentTexts
from services.orchestrator.models.contract import Route
from services.orchestrator.store.audit import NewEntry
from services.orchestrator.store.compactions import Compaction
from services.orchestrator.store.records import Approval, Conversation, HaltReason, Message
from services.orchestrator.store.turns import Claim
from services.orchestrator.turns.recorder import RunRecorder
from services.orchestrator.turns.stream import TurnStream

if TYPE_CHECKING:
    from services.orchestrator.turns.reviews import TurnReviews

# "person", "time" and "full" end the turn; with the others somebody goes on with it.
StopReason = Literal["person", "time", "full", "shutdown", "lost"]
ENDING_STOPS: frozenset[StopReason] = frozenset({"person", "time", "full"})


@dataclass(frozen=True, slots=True)
class ChargedCalls:
    """What calls of a running script cost that is in the totals already."""

    cost_usd: float = 0.0
    unknown_calls: int = 0

    def plus(self, call: NestedCall) -> ChargedCalls:
        """With one more call of the script."""
        return ChargedCalls(
            self.cost_usd + (call.cost_usd or 0), self.unknown_calls + call.unknown_cost_calls
        )

    def left_of(self, outcome: CallOutcome) -> ChargedCalls:
        """What the whole call cost beyond this; never less than nothing."""
        return ChargedCalls(
            max(0.0, (outcome.cost_usd or 0) - self.cost_usd),
            max(0, outcome.unknown_cost_calls - self.unknown_calls),
        )


NOTHING_CHARGED = ChargedCalls()


@dataclass(slots=True)
class Turn:
    """What the loop knows of the turn it runs; the truth is in Postgres."""

    claim: Claim
    conversation: Conversation
    agent: Agent
    source: str
    locale: Locale
    stream: TurnStream
    recorder: RunRecorder
    # The whole log: only the holder of the claim adds to it.
    log: list[Message]
    # Who is asked, in order.
    routes: Sequence[Route]
    # Model calls made so far, those before a pause included (TRN-105).
    model_calls: int = 0
    # Taken up after its process died: open calls run again only when that is safe (TRN-148).
    recovered: bool = False
    guard: LoopGuard = field(default_factory=LoopGuard)
    # What the agent said in this turn, in order (TRN-043).
    said: list[str] = field(default_factory=list)
    # The next reply goes on in the middle of the last thing said.
    continues_reply: bool = False
    # The model was asked once more after a reply without a word (FLD-006).
    asked_for_words: bool = False
    # The escalation route was used, before a pause included: not a second time (TRN-178).
    escalated: bool = False
    stop_reason: StopReason | None = None
    # How long it may run when nobody attends it; None: no limit.
    seconds_left: float | None = None
    # Text of the model call at hand that watchers have seen and the log has not.
    shown: str = ""
    # The route that has begun to answer and has not finished: leaving costs an unknown price.
    served_by: Route | None = None
    # The agent's files as they were when the turn began here; a change counts from the next turn on.
    texts: AgentTexts | None = None
    # Of the parts of the prompt of the conversation's last model call; None before it was looked up.
    told_digests: Mapping[str, str] | None = None
    # The summary that stands for older turns in the prompt.
    compaction: Compaction | None = None
    # No summary came: it is not asked for again in this turn.
    cannot_compact: bool = False
    # Run step of the model call, or of the tool calls by id, that is open now.
    model_step: runs_pb2.RunStep | None = None
    call_steps: dict[str, runs_pb2.RunStep] = field(default_factory=dict)
    # Of an agent whose calls a second model judges.
    reviews: TurnReviews | None = None
    # Room for the calls of the turn's scripts.
    nested_budget: NestedBudget = field(default_factory=lambda: NestedBudget(0))
    # What calls of a running script cost that is charged already, by the script's call id.
    charged: dict[str, ChargedCalls] = field(default_factory=dict)
    # Why reads that run, or ran, were let through, by call id: stored with their results.
    let_through: dict[str, NewEntry] = field(default_factory=dict)

    @property
    def attended(self) -> bool:
        """Whether a person is there for it (FLD-008)."""
        return self.seconds_left is None

    @property
    def conversation_id(self) -> str:
        """Of the conversation."""
        return self.claim.conversation_id

    @property
    def run_id(self) -> str:
        """Of the run that records this turn."""
        return self.claim.run_id

    def say(self, text: str) -> None:
        """Count what the agent said to what the turn answers."""
        if self.continues_reply and self.said:
            self.said[-1] += text
        else:
            self.said.append(text)
        self.continues_reply = False

    @property
    def budget_left_usd(self) -> float | None:
        """What may still be spent in this conversation; None without a cap."""
        cap = self.conversation.cost_cap_usd
        return max(0.0, cap - self.conversation.spent_usd) if cap > 0 else None


def cut_off_by(turn: Turn) -> CutOff:
    """What calls that a stop kept from running are told."""
    match turn.stop_reason:
        case "time" | "full" as reason:
            return reason
        case _:
            return "not_started"


@dataclass(frozen=True, slots=True)
class Done:
    """The agent answered."""

    text: str


@dataclass(frozen=True, slots=True)
class Halted:
    """The turn was ended by a limit."""

    reason: HaltReason
    # A sentence in place of the reason's own, where there is more to say.
    text: str = ""
    # The run is closed already, with what led to the halt.
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn could not go on; the sentence is for the person."""

    message: str
    # Of the run; a code under status ``error``.
    summary: str = ""
    # The run is closed already, with what led to the failure.
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """The turn waits for a person."""

    approval: Approval


Ending = Done | Halted | Failed | Waiting

"""What passes between the turn loop and the pipeline of tool calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from services.common.toolhost.contract import Effect, Fault, ImageBlock, Outcome
from services.common.toolhost.nested import NestedCall, ScriptRecord
from services.common.wording import Locale
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls.budget import NestedBudget
from services.orchestrator.calls.review import Reviews
from services.orchestrator.calls.toolbox import Toolbox
from services.orchestrator.store.records import (
    Approval,
    ApprovalKind,
    Conversation,
    GateVerdict,
    Review,
    StoredCall,
)

Shortened = Literal["structure", "summary", "cut"]
# How a call failed. Beside the faults of hosts: its arguments did not fit, no such tool, a hook, the
# turn was stopped, its process died, the turn ended before it, and what the tool says itself.
CallFault = (
    Fault
    | Literal["arguments", "unknown_tool", "blocked", "cancelled", "interrupted", "closed", "refused", "tool"]
)
# Why a turn that is being cut off leaves its calls without running them.
CutOff = Literal["not_started", "time", "full"]
# What kind of run step a call becomes (TRN-229, TRN-233).
StepKind = Literal["tool", "note", "question"]


@dataclass(frozen=True, slots=True)
class UnknownOutcome:
    """An earlier writing call of the conversation that may have taken effect (FLD-084)."""

    tool: str
    arguments_sha256: bytes


@dataclass(frozen=True, slots=True)
class Scope:
    """For whom and within what the calls of one assistant message run."""

    conversation: Conversation
    agent: Agent
    # The tools that were declared to the model for this message.
    toolbox: Toolbox
    run_id: str
    source: str
    locale: Locale
    # Decided requests by call id; calls without one go through the gate.
    decisions: Mapping[str, Approval] = field(default_factory=dict)
    # Taken up after a restart: of the open calls only replay-safe ones run again (TRN-148).
    recovered: bool = False
    unknown_outcomes: Sequence[UnknownOutcome] = ()
    # Has calls judged by a second model; None: it cannot be had here, and calls that need it ask.
    reviews: Reviews | None = None
    budget_left_usd: float | None = None
    # Reads the conversation as it is now, so that autonomy and grants taken back count at the next
    # call (PIP-004); None: `conversation` is current enough.
    reread: Callable[[], Awaitable[Conversation]] | None = None
    # Asked when the turn is cancelled: True leaves the open calls without results, for whoever
    # takes the turn over; False closes them (PIP-032).
    leave_open: Callable[[], bool] = lambda: False
    # Asked when it closes them: what the results say.
    cut_off_by: Callable[[], CutOff] = lambda: "not_started"
    # A person is there for the turn.
    attended: bool = False
    # Of the calls that the turn's scripts make; None: they are not counted.
    nested_budget: NestedBudget | None = None
    # The call that makes these calls; "": a model does.
    parent_call_id: str = ""
    # Results are handed on whole: whoever made the call shortens them (SCR-055).
    whole_results: bool = False


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What became of one call."""

    call: StoredCall
    # For the model: fits the ceiling, an error with its "Tool error: ".
    text: str
    ok: bool
    # Why it was let through, or why it was not; "failed": it never came to the gate.
    verdict: GateVerdict
    # Of the verdict, for run card and audit; "" when there is nothing to say.
    reason: str
    outcome: Outcome
    # Of the effect alone; None: nothing ran.
    ms: int | None = None
    # The final arguments, as they ran or would have run.
    arguments_json: str = "{}"
    cost_usd: float | None = None
    unknown_cost_calls: int = 0
    # JSON text for the product; never told to a model.
    details_json: str = "{}"
    shortened: Shortened | None = None
    # Characters of the whole output; None: it is not shortened.
    original_chars: int | None = None
    images: Sequence[ImageBlock] = ()
    new_tools: Sequence[str] = ()
    # Votes for the end of the turn (PIP-034, PIP-133).
    terminate: bool = False
    # The query ran and matched nothing (TLS-059).
    absent: bool = False
    cancelled: bool = False
    step_kind: StepKind = "tool"
    # What a run step keeps (TRN-294 to 302).
    step_output: str = ""
    step_arguments: Mapping[str, str] = field(default_factory=dict)
    # None: it did not fail, or a rule or a person refused it.
    fault: CallFault | None = None
    # The parameters at fault, or the tools nearest to an unknown name (PIP-154).
    about: Sequence[str] = ()
    # Of the tool; None: there is none, or the call was closed unlooked at.
    effect: Effect | None = None
    # Of the service that ran it.
    host: str = ""
    # Of the whole result in UTF-8, what was cut away included.
    bytes_out: int = 0
    # Of a command.
    exit_code: int | None = None
    # The route of the second model that judged it; "" when none was asked or none answered.
    reviewed_by: str = ""
    # Of a script.
    script: ScriptRecord | None = None

    @property
    def refused(self) -> bool:
        """Whether a rule or a person kept it from running, or nobody decided in time."""
        return self.verdict in {"refused", "denied", "expired"} or self.fault == "refused"


@dataclass(frozen=True, slots=True)
class ApprovalDraft:
    """What a person is to be asked."""

    kind: ApprovalKind
    tool: str
    # Final arguments: JSON text with the digits as written.
    arguments_json: str
    arguments_sha256: bytes
    # Why a rule asks; "" when the tool just needs approval (TRN-203).
    reason: str
    rule: str
    # One sentence saying what will happen, made to be shown (FLD-025).
    summary: str
    preview: str
    # Of a question (TRN-220); the question itself is `summary`.
    options: Sequence[str]
    default_answer: str | None
    may_always: bool
    # What "always" may be given for, narrowest first, as strings for `auto_approve` (FLD-021).
    grants: Sequence[str]
    # Of the host's verdict; to be handed back with the decision (PIP-091, FLD-022).
    token: str
    target_state: str
    # What a second model said of the call, when one was asked.
    review: Review | None = None


@dataclass(frozen=True, slots=True)
class Completed:
    """Every call of the batch has its result stored."""

    outcomes: Sequence[CallOutcome]
    # Every result voted for the end of the turn (PIP-034).
    terminate: bool


@dataclass(frozen=True, slots=True)
class Paused:
    """A person must decide on `call`; calls before it are done, it and those after it are open."""

    outcomes: Sequence[CallOutcome]
    call: StoredCall
    ask: ApprovalDraft


BatchEnd = Completed | Paused


@dataclass(frozen=True, slots=True)
class InnerStart:
    """A call of a running call that may run, and why."""

    call: StoredCall
    arguments_json: str
    allowed_by: GateVerdict
    rule: str
    effect: Effect
    # The route of the second model that let it run; "": none was asked.
    reviewed_by: str = ""


class EffectSink(Protocol):
    """What is said of one effect while it runs."""

    async def progress(self, call_id: str, text: str, details: Mapping[str, Any]) -> None:
        """A running call says how far it is; live only."""

    async def nested(self, call_id: str, index: int, call: NestedCall) -> None:
        """A call that the running call `call_id` made ended: shown, and charged at once (TRN-290)."""

    async def starting(
        self,
        call: StoredCall,
        arguments_json: str,
        allowed_by: GateVerdict,
        rule: str,
        effect: Effect,
        reviewed_by: str,
    ) -> None:
        """The effect is about to begin; durable before this returns (audit, approval consumed)."""


class CallSink(EffectSink, Protocol):
    """Where the pipeline says what happens; every method is awaited, in order for one call.

    `starting`, `ended` and `store` may raise: the batch then ends with that error. What `nested`
    raises reaches the tool whose call it was. `announced` and `progress` are for watchers; what they
    raise is logged and changes nothing (PIP-129).
    """

    async def announced(self, call: StoredCall) -> None:
        """A call is taken up: the ``tool_call`` event with the arguments as the model wrote them."""

    async def inner_starting(self, starts: Sequence[InnerStart]) -> None:
        """Calls that a running call makes are about to begin; durable, as `starting`."""

    async def inner_ended(self, outcome: CallOutcome) -> None:
        """A call that a running call made ended: for the record; `nested` is for those who watch."""

    async def ended(self, outcome: CallOutcome) -> None:
        """A call ended: the ``tool_result`` event and its run step."""

    async def store(self, outcomes: Sequence[CallOutcome]) -> None:
        """Store the tool messages, in the order written."""

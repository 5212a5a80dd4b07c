"""What passes between the gate and the second model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, Protocol

from services.orchestrator.agents.profile import ReviewRule
from services.orchestrator.models.contract import ChatMessage, Route, ToolDeclaration, Usage
from services.orchestrator.store.records import ReviewVerdict, StoredCall

# Why there is no judgement; the words for it are `calls.review.none.<why>`.
Silence = Literal["late", "unreadable", "failed", "unusable", "too_long", "missing", "dropped", "budget"]


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """One call that is to be judged, with the arguments it would run with."""

    rule: ReviewRule
    tool: str
    # JSON text of the final arguments.
    arguments_json: str
    arguments_sha256: bytes

    @property
    def key(self) -> tuple[str, bytes, ReviewRule]:
        """What a judgement holds for: another argument, or another rule, is another call."""
        return self.tool, self.arguments_sha256, self.rule


@dataclass(frozen=True, slots=True)
class Seen:
    """What the reviewer is shown besides the call.

    Attributes:
        policy: The text that the first model has too, byte for byte (PIP-148).
        messages: Of the first model's prompt; empty for ``sees: call`` (PIP-151).
        tools: As they were declared with those messages.
    """

    policy: str
    messages: Sequence[ChatMessage] = ()
    tools: Sequence[ToolDeclaration] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the second model said.

    Attributes:
        verdict: ``none``: it gave no usable answer, and `silence` says why.
        reason: Of the model; "" without one.
        instead: What would be acceptable; "" when it did not say.
        usage: Of the reply.
        cost_usd: Of the reply; None: unknown, or there was none.
        unknown_cost_calls: Of the reply itself and of attempts that were given up for it. What gave no
            whole reply is in the ledger alone (TRN-270).
    """

    verdict: ReviewVerdict
    route: Route
    reason: str = ""
    instead: str = ""
    silence: Silence | None = None
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    unknown_cost_calls: int = 0
    ms: int = 0


class Reviews(Protocol):
    """The reviews of one turn."""

    @property
    def denials(self) -> int:
        """How many of the turn's last judgements, in a row, were denials."""

    async def judge(self, call: StoredCall, request: ReviewRequest) -> Judgement:
        """The judgement on `call`: one that was begun while the model streamed, or a new one.

        It is recorded, with what it cost, when this returns.
        """


def rule_for(rules: Sequence[ReviewRule], tool: str) -> ReviewRule | None:
    """The first rule that names `tool`, or a pattern that it fits, such as ``mcp__*``."""
    return next((rule for rule in rules if any(fnmatchcase(tool, pattern) for pattern in rule.tools)), None)

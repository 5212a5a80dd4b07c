"""The rows the rest of the orchestrator works with, as immutable values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Role = Literal["user", "assistant", "tool"]
# Who wrote a message: a loop's own note has role "user" and author "system".
Author = Literal["person", "agent", "tool", "system"]
RunStatus = Literal["running", "awaiting_approval", "done", "halted", "error"]
HaltReason = Literal["max_steps", "loop", "budget", "nested_calls", "errors", "time", "context"]
# "budget": whether to go on today although a budget is spent (FLD-016).
ApprovalKind = Literal["tool", "question", "budget"]
ApprovalStatus = Literal["pending", "approved", "denied", "expired", "answered"]
QueueKind = Literal["follow_up", "steer"]
# What a second model said of a call; "none": it gave no usable answer.
ReviewVerdict = Literal["allow", "ask", "deny", "none"]
# Why a call was let through, or why it was not.
GateVerdict = Literal[
    "free", "routine", "autonomous", "always", "approved", "asked", "refused", "denied", "expired", "failed"
]


@dataclass(frozen=True, slots=True)
class StoredCall:
    """One tool call of an assistant message.

    `id` is the orchestrator's own (FLD-002); `provider_id` is what the model wrote and is used on
    the wire alone. `arguments` is the text of a JSON object as the model wrote it; when what the
    model wrote is no JSON object, it is ``{}`` and `broken` says where it broke (TRN-128).
    """

    id: str
    name: str
    arguments: str
    provider_id: str = ""
    broken: str | None = None
    # The reply ended at the output limit: no call of it may run (PIP-013).
    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call; None where the provider did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation's log."""

    id: int
    conversation_id: str
    seq: int
    role: Role
    content: str
    author: Author
    created_at: datetime
    run_id: str | None = None
    tool_calls: Sequence[StoredCall] = ()
    # The orchestrator's id of the call that this tool message answers.
    tool_call_id: str | None = None
    name: str | None = None
    provider: str | None = None
    model: str | None = None
    cost_usd: float | None = None
    # It was worked out of the lengths of texts (FLD-018).
    cost_estimated: bool = False
    usage: Usage = Usage()
    is_error: bool = False
    # JSON text for the product; never told to a model.
    details: str = "{}"
    # JSON text of what stands before an opening message, or of a script's calls; None: nothing.
    context: str | None = None
    # What the provider that wrote it needs back (FLD-001): JSON text, never shown or logged.
    opaque: str | None = None
    # The first message of a turn: turns are numbered by these.
    opens_turn: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation without its messages."""

    id: str
    agent_id: str
    channel: str
    title: str
    created_at: datetime
    updated_at: datetime
    autonomous: bool
    skills: Sequence[str]
    # Tools, or "tool:scope", that run unasked here until revoked.
    auto_approve: Sequence[str]
    approval_ttl_seconds: int | None
    # 0 means no cap.
    cost_cap_usd: float
    spent_usd: float
    unknown_cost_calls: int
    forked_from: str | None = None
    parent_conversation_id: str | None = None

    @property
    def over_budget(self) -> bool:
        """Whether the cap is spent (TRN-261)."""
        return self.cost_cap_usd > 0 and self.spent_usd >= self.cost_cap_usd


@dataclass(frozen=True, slots=True)
class Review:
    """What a second model said of a call, as the person who is asked sees it (PIP-102)."""

    verdict: ReviewVerdict
    reason: str
    # ``provider:model``.
    route: str


@dataclass(frozen=True, slots=True)
class Approval:
    """A request that waits, or waited, for a person."""

    id: str
    conversation_id: str
    agent_id: str
    run_id: str
    kind: ApprovalKind
    tool: str
    tool_call_id: str
    # JSON text of the final arguments; what runs must have the same digest (PIP-092).
    arguments: str
    arguments_sha256: bytes
    reason: str
    summary: str
    preview: str
    options: Sequence[str]
    default_answer: str | None
    answer: str | None
    status: ApprovalStatus
    may_always: bool
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None = None
    decided_by: str | None = None
    # Of the host's verdict: proof of the first phase, and the state of the target when asked.
    token: str = ""
    target_state: str = ""
    review: Review | None = None
    # Whether a surface has shown it: "waiting", "delivered", "not_delivered"; "" of old requests.
    delivery: str = ""

"""What a scripted turn does, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Text:
    """Words of the model, sent in pieces of a few characters."""

    words: str
    piece: int = 12
    # Seconds between pieces.
    pace: float = 0.0


@dataclass(frozen=True)
class Hold:
    """Nothing more happens until the test releases this name."""

    name: str


@dataclass(frozen=True)
class Call:
    """One tool call and its result."""

    tool: str
    arguments: dict[str, Any]
    output: str = ""
    ok: bool = True
    ms: int = 12
    verdict: str = "free"
    progress: str = ""
    # Wait for this name between the call and its result.
    hold: str = ""


@dataclass(frozen=True)
class Ask:
    """A call that waits for a person; the result is what approval leads to."""

    tool: str
    arguments: dict[str, Any]
    summary: str
    reason: str = ""
    preview: str = ""
    may_always: bool = True
    output: str = "done"
    seconds: float = 600
    # What a second model said: (verdict, reason).
    review: tuple[str, str] | None = None
    # "tool", or "budget": whether to go on past one that is spent.
    kind: str = "tool"


@dataclass(frozen=True)
class Question:
    """A question to the person."""

    text: str
    options: Sequence[str] = ()
    seconds: float = 600


@dataclass(frozen=True)
class Fallback:
    """A route failed and another takes over."""

    route: str
    error: str
    next_route: str


@dataclass(frozen=True)
class Escalate:
    """The turn is handed to another model; without an error because it went in circles."""

    route: str
    error: str = ""


@dataclass(frozen=True)
class Fail:
    """The turn ends with an error."""

    message: str


@dataclass(frozen=True)
class Halt:
    """The turn is halted."""

    reason: str


Step = Text | Hold | Call | Ask | Question | Fallback | Escalate | Fail | Halt


@dataclass
class Plan:
    """The steps of one turn. The model's words end a model call; calls that follow belong to it."""

    steps: list[Step] = field(default_factory=list)
    cost_usd: float | None = 0.0021


def plan(*steps: Step, cost_usd: float | None = 0.0021) -> Plan:
    """A plan of these steps."""
    return Plan(list(steps), cost_usd)

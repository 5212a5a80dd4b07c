"""The Python side of the ToolHost contract: one kind of tool, wherever it runs.

A tool host, the orchestrator's own tools included, is a set of objects with the shape of `Tool`.
The three layers of a tool (PIP-001 to 003) are three groups of fields of `ToolSpec`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from services.common.toolhost.nested import NestedCall, NestedReport, ScriptRecord
from services.common.wording import Locale

ToolKind = Literal["search", "read", "analyse", "query", "change", "collaborate", "event", "user"]
Effect = Literal["read", "replace", "change"]
Mode = Literal["assistant", "work"]
Outcome = Literal["done", "not_started", "unknown"]
Isolation = Literal["none", "os", "container", "vm"]
# What kept a call from its end, when it was not the tool's own word: too long, a limit of memory or
# processes, a service that is away, a bug.
Fault = Literal["timeout", "limit", "unavailable", "crash"]

DEFAULT_DEADLINE_SECONDS = 600

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool as it is described to an agent, in one language."""

    # What the model is told.
    name: str
    description: str
    parameters: Mapping[str, Any]
    # What the orchestrator needs to run it.
    label: str
    kind: ToolKind
    effect: Effect
    requires_approval: bool = False
    parallel: bool = False
    replay_safe: bool = False
    deadline_seconds: int = DEFAULT_DEADLINE_SECONDS
    judges: bool = False
    sizes_itself: bool = False
    prepares_arguments: bool = False
    # Judged with a preview and a token, run with that token, never repeated (PIP-091).
    two_phase: bool = False
    # What the product adds.
    prompt_snippet: str = ""
    guidelines: Sequence[str] = ()
    card: str = ""


@dataclass(frozen=True, slots=True)
class ShellLimits:
    """Limits of one command (PIP-160)."""

    cpu_seconds: int = 600
    memory_bytes: int = 4 * 1024**3
    processes: int = 256
    file_bytes: int = 1024**3


@dataclass(frozen=True, slots=True)
class WorkspaceGrant:
    """What one call may touch. Paths are absolute unless said otherwise."""

    root: str
    # Relative to root; empty allows the whole workspace.
    write_paths: Sequence[str] = ()
    private_paths: Sequence[str] = ()
    shell_network: bool = True
    # Relative to root.
    shell_write_paths: Sequence[str] = ()
    ask_patterns: Sequence[str] = ()
    allow_patterns: Sequence[str] = ()
    deny_patterns: Sequence[str] = ()
    closed_ports: Sequence[int] = ()
    temp_dir: str = ""
    limits: ShellLimits = ShellLimits()
    umask: int = 0o002


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who calls, from where, on whose behalf; belongs to one call (PIP-004, PIP-118)."""

    agent_id: str
    conversation_id: str
    run_id: str
    call_id: str
    workspace: WorkspaceGrant
    locale: Locale = "en"
    parent_call_id: str = ""
    channel: str = ""
    source: str = ""
    autonomous: bool = False
    budget_left_usd: float | None = None
    output_chars: int = 8000
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask:
    """A person must be asked, even in an autonomous conversation."""

    reason: str
    rule: str = ""
    preview: str = ""
    token: str = ""
    target_state: str = ""


@dataclass(frozen=True, slots=True)
class Routine:
    """Runs even in a supervised conversation."""

    rule: str = ""
    target_state: str = ""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Refused outright; nobody is asked and nobody can approve it (TLS-020)."""

    text: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class NoOpinion:
    """The gate decides by the tool's flag, the conversation's stance and its grants."""

    preview: str = ""
    token: str = ""
    target_state: str = ""


Verdict = Ask | Routine | Refuse | NoOpinion


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """A picture for the model, by its path in the workspace."""

    path: str
    media_type: str


Block = TextBlock | ImageBlock


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a run gives back: content for the model, details for the product (PIP-114)."""

    content: Sequence[Block] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    is_error: bool = False
    outcome: Outcome = "done"
    cost_usd: float | None = None
    unknown_cost_calls: int = 0
    terminate: bool = False
    new_tools: Sequence[str] = ()
    # Ran nothing because of a rule that nobody can approve away.
    refused: bool = False
    # The query ran and matched nothing (TLS-059).
    absent: bool = False
    # Of an error that is not the tool's own word.
    fault: Fault | None = None
    # Of a script; what its calls cost is part of `cost_usd`.
    script: ScriptRecord | None = None

    @property
    def text(self) -> str:
        """The text blocks, joined by line breaks."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))


def text_result(text: str, **fields: Any) -> ToolResult:
    """A result of one text block."""
    return ToolResult(content=(TextBlock(text),), **fields)


class ToolError(Exception):
    """A fault the tool explains itself, in the caller's language (PIP-050).

    Args:
        text: What was tried, what stands in the way and what to try instead, without the leading
            ``Tool error:``, which the pipeline adds.
        details: For the product.
        refused: A hard refusal (containment, address guard): nothing ran, nobody can approve it.
        outcome: Whether the effect took place.
        fault: What kept the call from its end, when that was not the tool itself.
    """

    def __init__(
        self,
        text: str,
        *,
        details: Mapping[str, Any] | None = None,
        refused: bool = False,
        outcome: Outcome = "not_started",
        fault: Fault | None = None,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.details = details or {}
        self.refused = refused
        self.outcome: Outcome = outcome
        self.fault: Fault | None = fault


class Progress(Protocol):
    """Where a running call says how far it is. Live only; dropped after the call has settled."""

    async def __call__(self, text: str, details: Mapping[str, Any] | None = None) -> None:
        """Report `text` so far (a whole state, not a piece) and structured `details`."""


async def unheard(call: NestedCall) -> None:
    """The `NestedReport` of a call that nobody listens to."""


@dataclass(frozen=True, slots=True)
class Run:
    """One call to run: its context, its validated arguments and what was approved with it."""

    context: CallContext
    arguments: Arguments
    progress: Progress
    token: str = ""
    target_state: str = ""
    nested: NestedReport = unheard


class Tool(Protocol):
    """One tool. Keeps its own invariants with no gate or hook in front of it (PIP-127)."""

    @property
    def name(self) -> str:
        """The name the model calls it by."""

    def spec(self, locale: Locale) -> ToolSpec:
        """Describe the tool in `locale`."""

    def offered_to(self, mode: Mode, settings: Mapping[str, Any]) -> bool:
        """Whether an agent of this mode and these settings gets it."""

    def prepare(self, arguments: Arguments) -> Arguments:
        """Convert known older shapes; pure, returns a new value or the same (PIP-014)."""

    async def judge(self, context: CallContext, arguments: Arguments) -> Verdict:
        """What the tool thinks of this call before anybody is asked; free of effects."""

    async def run(self, run: Run) -> ToolResult:
        """Do it. Cancellation ends the work, its processes included, before it returns.

        Raises:
            ToolError: A fault explained in the caller's language.
        """

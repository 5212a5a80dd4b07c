"""What the registry and the pipeline know of a tool host, wherever it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from services.common.toolhost.contract import (
    Arguments,
    CallContext,
    Isolation,
    Mode,
    Progress,
    ToolResult,
    ToolSpec,
    Verdict,
    unheard,
)
from services.common.toolhost.nested import NestedReport
from services.common.wording import Locale

JUDGE_SECONDS = 5.0
PREPARE_SECONDS = 5.0
# How long a host may take to answer a cancellation before it is reported (PIP-042).
CANCEL_SECONDS = 5.0

HostStatus = Literal["unknown", "ready", "unreachable", "unresponsive"]
Released = Literal["turn", "conversation", "agent"]


@dataclass(frozen=True, slots=True)
class Audience:
    """For whom a host is asked to describe its tools."""

    agent_id: str
    locale: Locale
    mode: Mode
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostState:
    """What Connections shows of a host."""

    name: str
    status: HostStatus
    isolation: Isolation = "none"
    isolation_note: str = ""
    # Of the last failure, for the owner; never a secret.
    note: str = ""


@dataclass(frozen=True, slots=True)
class HostRun:
    """One call as a host runs it."""

    context: CallContext
    spec: ToolSpec
    arguments: Arguments
    progress: Progress
    # Set when the turn is stopped; the host ends its work and still gives a result.
    stop: asyncio.Event
    token: str = ""
    target_state: str = ""
    # Told of each call that the call itself made.
    nested: NestedReport = unheard


class CannotJudge(Exception):
    """A host that failed, was silent or spoke nonsense when asked to judge: a person is asked."""


class CannotPrepare(Exception):
    """A host that could not convert arguments; they are held against the schema as they are."""


class ToolHost(Protocol):
    """A set of tools in one place."""

    @property
    def name(self) -> str:
        """Of the service, as an owner reads it in errors and Connections."""

    async def describe(self, audience: Audience) -> Sequence[ToolSpec]:
        """The tools for `audience`, in the host's order; the last known when it is away."""

    async def prepare(self, tool: str, arguments: Arguments) -> Arguments:
        """Convert known older shapes (PIP-014).

        Raises:
            CannotPrepare: No usable answer.
        """

    async def judge(self, tool: str, context: CallContext, arguments: Arguments) -> Verdict:
        """What the host thinks of the call, within `JUDGE_SECONDS`.

        Raises:
            CannotJudge: No usable answer.
        """

    async def run(self, run: HostRun) -> ToolResult:
        """Run the call to its end, its deadline or `run.stop`; every fault is a result."""

    async def release(self, kind: Released, name: str) -> None:
        """Tell the host that a turn, conversation or agent is gone; best effort."""

    def state(self) -> HostState:
        """How the host is, as far as is known without asking."""

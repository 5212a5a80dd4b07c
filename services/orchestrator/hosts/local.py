"""The orchestrator's own tools, in process, as a host like any other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from services.common.toolhost.contract import (
    Arguments,
    CallContext,
    NoOpinion,
    Run,
    Tool,
    ToolError,
    ToolResult,
    ToolSpec,
    Verdict,
    text_result,
)
from services.common.wording import load
from services.orchestrator.hosts.contract import (
    JUDGE_SECONDS,
    Audience,
    CannotJudge,
    CannotPrepare,
    HostRun,
    HostState,
    Released,
)

_log = structlog.get_logger(__name__)


class LocalToolHost:
    """A host whose tools are objects of this process.

    Args:
        name: As an owner reads it.
        tools: In the order they are described.
    """

    def __init__(self, name: str, tools: Sequence[Tool]) -> None:
        self._name = name
        self._tools = {tool.name: tool for tool in tools}

    @property
    def name(self) -> str:
        """As an owner reads it."""
        return self._name

    async def describe(self, audience: Audience) -> Sequence[ToolSpec]:
        """The tools for `audience`."""
        return [
            tool.spec(audience.locale)
            for tool in self._tools.values()
            if tool.offered_to(audience.mode, audience.settings)
        ]

    async def prepare(self, tool: str, arguments: Arguments) -> Arguments:
        """Convert known older shapes.

        Raises:
            CannotPrepare: The tool failed.
        """
        try:
            return self._tools[tool].prepare(arguments)
        except Exception as error:
            _log.exception("prepare_failed", tool=tool)
            raise CannotPrepare(tool) from error

    async def judge(self, tool: str, context: CallContext, arguments: Arguments) -> Verdict:
        """What the tool thinks of the call.

        Raises:
            CannotJudge: The tool failed, or took longer than `JUDGE_SECONDS`.
        """
        judged = self._tools.get(tool)
        if judged is None:
            return NoOpinion()
        try:
            async with asyncio.timeout(JUDGE_SECONDS):
                return await judged.judge(context, arguments)
        except Exception as error:
            _log.exception("judge_failed", tool=tool, call_id=context.call_id)
            raise CannotJudge(tool) from error

    async def run(self, run: HostRun) -> ToolResult:
        """Run the tool to its end, its deadline or the turn's stop."""
        locale = run.context.locale
        words = load("orchestrator")
        tool = self._tools.get(run.spec.name)
        if tool is None:
            text = words.text(locale, "hosts.tool_gone", tool=run.spec.name, service=self._name)
            return text_result(text, is_error=True, outcome="not_started")
        work = asyncio.create_task(
            tool.run(Run(run.context, run.arguments, run.progress, run.token, run.target_state, run.nested))
        )
        stopped = asyncio.create_task(run.stop.wait())
        try:
            done, _ = await asyncio.wait(
                {work, stopped}, timeout=run.spec.deadline_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            late = not done
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
        finally:
            stopped.cancel()
            work.cancel()
        if work.cancelled():
            key = "hosts.deadline" if late else "hosts.cancelled"
            text = words.text(locale, key, tool=run.spec.name, seconds=run.spec.deadline_seconds)
            return text_result(text, is_error=True, outcome="unknown", fault="timeout" if late else None)
        return self._result_of(work, run)

    def _result_of(self, work: asyncio.Task[ToolResult], run: HostRun) -> ToolResult:
        error = work.exception()
        if error is None:
            return work.result()
        if isinstance(error, ToolError):
            return text_result(
                error.text,
                is_error=True,
                details=error.details,
                outcome=error.outcome,
                refused=error.refused,
                fault=error.fault,
            )
        # Its message may hold anything; the model gets the type and where to look (TLS-028).
        call_id = run.context.call_id
        _log.error("tool_failed", tool=run.spec.name, call_id=call_id, exc_info=error)
        text = load("orchestrator").text(
            run.context.locale, "calls.unexpected", kind=type(error).__name__, call_id=call_id
        )
        return text_result(text, is_error=True, outcome="unknown", fault="crash")

    async def release(self, kind: Released, name: str) -> None:
        """Nothing is kept between calls."""

    def state(self) -> HostState:
        """Always there."""
        return HostState(self._name, "ready", isolation_note="")

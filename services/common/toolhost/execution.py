"""Running one call at a host: once, within its deadline, and with every fault turned into a result."""

from __future__ import annotations

import asyncio
import sqlite3
import time

import structlog

from services.common.rpc import trace
from services.common.toolhost.contract import (
    CallContext,
    Fault,
    Outcome,
    Run,
    Tool,
    ToolError,
    ToolResult,
    ToolSpec,
    text_result,
)
from services.common.toolhost.once import CallLedger, Claimed, Done, Reused, Unfinished
from services.common.wording import Locale, load

_log = structlog.get_logger(__name__)


class Execution:
    """Runs the calls of a host.

    Args:
        ledger: Keeps calls that change something from acting twice.
    """

    def __init__(self, ledger: CallLedger) -> None:
        self._ledger = ledger
        self._texts = load("common")
        # Calls that change something and run now, by their key.
        self._running: dict[str, asyncio.Task[ToolResult]] = {}

    def begin(self, tool: Tool, spec: ToolSpec, run: Run, arguments_json: str) -> asyncio.Task[ToolResult]:
        """The task of the call. Its result is there in any case but that of its cancellation.

        Args:
            tool: What to run.
            spec: Its description.
            run: The call.
            arguments_json: The arguments as they were sent; a repetition has to send the same.
        """
        if spec.effect == "read":
            return asyncio.create_task(self._attempt(tool, spec, run))
        call_id = run.context.call_id
        first = self._running.get(call_id)
        work = asyncio.create_task(self._once(tool, spec, run, arguments_json, first))
        if first is None:
            self._running[call_id] = work
            work.add_done_callback(lambda _: self._running.pop(call_id, None))
        return work

    def cancelled(self, spec: ToolSpec, call: CallContext) -> ToolResult:
        """What is said of a call that was cancelled and had nothing to say of itself (PIP-136)."""
        return self._failure(_variant("toolhost.cancelled", spec), call.locale, spec, _interrupted(spec))

    def too_large(self, spec: ToolSpec, call: CallContext, outcome: Outcome) -> ToolResult:
        """What is said of a result that no message can carry."""
        return self._failure("toolhost.too_large", call.locale, spec, outcome)

    async def _once(
        self,
        tool: Tool,
        spec: ToolSpec,
        run: Run,
        arguments_json: str,
        first: asyncio.Task[ToolResult] | None,
    ) -> ToolResult:
        """Act if the call's key is new, else give what is known of it (PIP-090)."""
        if first is not None:
            await asyncio.wait({first})
        call_id, locale = run.context.call_id, run.context.locale
        try:
            claim = await self._ledger.claim(call_id, tool.name, arguments_json)
        except (sqlite3.Error, OSError):
            _log.exception("the record of calls cannot be written", call_id=call_id)
            return self._failure("toolhost.not_kept", locale, spec, "not_started")
        match claim:
            case Claimed():
                return await self._recorded(tool, spec, run)
            case Done(None):
                return text_result(self._texts.text(locale, "toolhost.done_before", tool=spec.name))
            case Done(ToolResult() as result):
                return result
            case Unfinished():
                return self._failure("toolhost.begun_before", locale, spec, "unknown")
            case Reused():
                return self._failure("toolhost.id_reused", locale, spec, "not_started")
        raise AssertionError(claim)

    async def _recorded(self, tool: Tool, spec: ToolSpec, run: Run) -> ToolResult:
        call_id = run.context.call_id
        try:
            result = await self._attempt(tool, spec, run)
        except asyncio.CancelledError:
            # Nobody waits for this result; the next one to ask gets it.
            await self._keep(call_id, self.cancelled(spec, run.context))
            raise
        await self._keep(call_id, result)
        return result

    async def _keep(self, call_id: str, result: ToolResult) -> None:
        try:
            await self._ledger.close_call(call_id, result)
        except (sqlite3.Error, OSError, ValueError):
            # The call stays "begun": a repetition hears that its end is not known, which is true.
            _log.exception("the end of a call cannot be kept", call_id=call_id)

    async def _attempt(self, tool: Tool, spec: ToolSpec, run: Run) -> ToolResult:
        """Run the tool within its deadline; every fault but a cancellation becomes a result."""
        call = run.context
        began = time.monotonic()
        limit = asyncio.timeout(spec.deadline_seconds)
        try:
            async with limit:
                result = await tool.run(run)
        except ToolError as error:
            result = text_result(
                error.text,
                details=error.details,
                is_error=True,
                refused=error.refused,
                outcome=error.outcome,
                fault=error.fault,
            )
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.expired():
                result = self._late(spec, call)
            else:
                result = self._unexpected(spec, call, error)
        _log.info(
            "call",
            tool=tool.name,
            agent_id=call.agent_id,
            conversation_id=call.conversation_id,
            run_id=call.run_id,
            call_id=call.call_id,
            **_span(),
            milliseconds=round((time.monotonic() - began) * 1000, 1),
            ok=not result.is_error,
            refused=result.refused,
            outcome=result.outcome,
            fault=result.fault,
            bytes_out=len(result.text.encode()),
        )
        return result

    def _late(self, spec: ToolSpec, call: CallContext) -> ToolResult:
        return self._failure(
            _variant("toolhost.late", spec),
            call.locale,
            spec,
            _interrupted(spec),
            "timeout",
            seconds=spec.deadline_seconds,
        )

    def _unexpected(self, spec: ToolSpec, call: CallContext, error: Exception) -> ToolResult:
        """A bug: its type and where to look it up go out, its message stays in the log (TLS-028)."""
        _log.exception("a tool failed", tool=spec.name, call_id=call.call_id)
        return self._failure(
            _variant("toolhost.unexpected", spec),
            call.locale,
            spec,
            _interrupted(spec),
            "crash",
            problem=type(error).__name__,
            call=call.call_id,
        )

    def _failure(
        self,
        key: str,
        locale: Locale,
        spec: ToolSpec,
        outcome: Outcome,
        fault: Fault | None = None,
        **values: object,
    ) -> ToolResult:
        text = self._texts.text(locale, key, tool=spec.name, **values)
        return text_result(text, is_error=True, outcome=outcome, fault=fault)


def _span() -> dict[str, str]:
    """Which span of the trace this is, and which one it is part of (PIP-110)."""
    here = trace.current()
    return {"span_id": here.span_id, "parent_span_id": here.parent_id} if here is not None else {}


def _interrupted(spec: ToolSpec) -> Outcome:
    """What is known of the effect of a call that did not come to its end."""
    return "not_started" if spec.effect == "read" else "unknown"


def _variant(key: str, spec: ToolSpec) -> str:
    return f"{key}_read" if spec.effect == "read" else key

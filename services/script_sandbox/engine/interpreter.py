"""One program in one interpreter, from its first line to its end or its death."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import structlog
from pydantic_monty import (
    AsyncFunctionSnapshot,
    AsyncMontySession,
    AsyncNameLookupSnapshot,
    MontyComplete,
    MontyCrashedError,
    MontyError,
    MontyRuntimeError,
)

from services.script_sandbox.engine.outcomes import Asked, Died, Outcome, Raised, Ran, Stopped
from services.script_sandbox.engine.printed import Printed
from services.script_sandbox.lowering import Program

# The feeds of a session before the script: the prelude, and what begins it.
_OWN_FILES = frozenset(("<python-input-0>", "<python-input-1>"))
_HOST = "__host"
_BEGIN = "__begin(__limits_given, __texts_given, __llm_given, __store_given)"
_STOPS = frozenset(("steps", "depth", "value", "integer", "calls", "questions", "arguments"))
# What the engine calls the exception that stands for ToolError; it raises none of its own.
_TOOL_ERROR = "OSError"
_MAX_MESSAGE = 2_000
_END_SECONDS = 5.0

_log = structlog.get_logger(__name__)


class Interpreter:
    """A worker that holds the prelude and waits for its one program.

    Args:
        checkout: Gives the session back, and with it the worker's place.
        session: The worker's; the prelude was read into it.
    """

    def __init__(
        self, checkout: AbstractAsyncContextManager[AsyncMontySession], session: AsyncMontySession
    ) -> None:
        self._checkout = checkout
        self._session = session
        pid = session.worker_pid
        self._process = os.pidfd_open(pid) if pid is not None else -1
        self._snapshot: AsyncFunctionSnapshot | None = None
        self._program: Program | None = None
        self.printed = Printed(0)

    async def begin(
        self, program: Program, printed: Printed, given: Mapping[str, Any], inputs: Mapping[str, Any]
    ) -> Outcome:
        """Start a program.

        Args:
            program: Lowered from a checked script.
            printed: Takes what it prints.
            given: The values that the prelude is begun with.
            inputs: Names that are bound before its first line.
        """
        self._program, self.printed = program, printed
        try:
            await self._session.feed_run(_BEGIN, inputs=dict(given))
        except MontyError:
            return Died("died")
        return await self._go(
            self._session.feed_start(program.text, inputs=dict(inputs), print_callback=self._print)
        )

    async def resume(self, program: Program, printed: Printed, dump: bytes) -> Outcome:
        """Go on with a paused program, in a session that has read nothing.

        Raises:
            MontyError: The dump is not one of this engine.
        """
        self._program, self.printed = program, printed
        snapshot = await self._session.load_snapshot(dump, print_callback=self._print)
        return await self._settle(snapshot)

    async def answer(self, value: Any) -> Outcome:
        """Answer what was asked, with plain data."""
        return await self._go(self._waiting().resume({"return_value": value}))

    async def fail(self, text: str) -> Outcome:
        """Answer what was asked with a ToolError (SCR-045)."""
        return await self._go(self._waiting().resume({"exception": OSError(text)}))

    def dump(self) -> bytes:
        """The paused program as bytes."""
        return self._waiting().dump()

    def limit_processor(self, seconds: float) -> None:
        """Lower the processor time of the worker, which the kernel enforces."""
        import resource

        pid = self._session.worker_pid
        if pid is not None:
            whole = max(1, round(seconds))
            with contextlib.suppress(OSError):
                resource.prlimit(pid, resource.RLIMIT_CPU, (whole, whole + 1))

    async def close(self) -> None:
        """End the worker, whatever it does, and wait until it is gone."""
        if self._process >= 0:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)
        self._snapshot = None
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._checkout.__aexit__(None, None, None)
        except (MontyError, TimeoutError) as error:
            _log.warning("script_worker_end", problem=type(error).__name__)
        finally:
            if self._process >= 0:
                os.close(self._process)
                self._process = -1

    def _print(self, _stream: str, text: str) -> None:
        self.printed.add(text)

    def _waiting(self) -> AsyncFunctionSnapshot:
        if self._snapshot is None:
            raise RuntimeError("the program does not wait for an answer")
        return self._snapshot

    async def _go(self, moving: Awaitable[Any]) -> Outcome:
        self._snapshot = None
        try:
            return await self._settle(await moving)
        except MontyCrashedError as error:
            return Died(_death(error))
        except MontyRuntimeError as error:
            return await self._ended(error)
        except MontyError as error:
            _log.warning("script_program_refused", problem=str(error)[:200])
            return Died("protocol")

    async def _settle(self, state: Any) -> Outcome:
        while isinstance(state, AsyncNameLookupSnapshot):
            # Bound somewhere in the script and not yet: a NameError, as in Python.
            state = await state.resume()
        if isinstance(state, MontyComplete):
            return _ran(state.output)
        if (
            not isinstance(state, AsyncFunctionSnapshot)
            or state.is_os_function
            or state.function_name != _HOST
        ):
            return Died("protocol")
        self._snapshot = state
        return Asked(tuple(state.args))

    async def _ended(self, error: MontyRuntimeError) -> Outcome:
        kind, _, message = error.display(format="type-msg").partition(": ")
        kind = kind.rpartition(".")[2]
        lines = self._lines(error)
        if kind == "MemoryError":
            return await self._stopped(lines)
        if kind == "TimeoutError":
            return Died("alone")
        name = "ToolError" if kind == _TOOL_ERROR else kind
        return Raised(name, message[:_MAX_MESSAGE], lines[-1] if lines else 0)

    async def _stopped(self, lines: list[int]) -> Outcome:
        try:
            why = await self._session.feed_run("__why")
        except MontyError:
            why = None
        cause = why if isinstance(why, str) and why in _STOPS else "memory"
        # The call that was too deep is the one before the function it entered.
        line = lines[-2] if cause == "depth" and len(lines) > 1 else lines[-1] if lines else 0
        return Stopped(cause, line)  # type: ignore[arg-type]  # one of the names just checked

    def _lines(self, error: MontyRuntimeError) -> list[int]:
        program = self._program
        if program is None:
            return []
        return [
            program.script_line(frame.line, frame.column)
            for frame in error.traceback()
            if frame.filename not in _OWN_FILES
        ]


def _death(error: MontyCrashedError) -> Any:
    if getattr(error, "timed_out", False):
        return "alone"
    # The kernel's signal at the limit of processor time; the engine names it in its message alone.
    return "cpu" if "SIGXCPU" in str(error) else "died"


def _ran(output: object) -> Outcome:
    """Read what `__end` returned; a worker that says anything else is not believed."""
    match output:
        case [int(steps), list(pairs)]:
            writes = [(pair[0], pair[1]) for pair in pairs if _is_write(pair)]
            if len(writes) == len(pairs):
                return Ran(steps, writes)
    return Died("protocol")


def _is_write(pair: object) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and (pair[1] is None or isinstance(pair[1], str))
    )

"""One script from its start to its last message (SCR-258 to SCR-264)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import structlog
from crew.v1 import script_sandbox_pb2 as pb
from pydantic_monty import MontyError

from services.common.wording import Locale, locale_of
from services.script_sandbox.bridge import endings
from services.script_sandbox.bridge.answers import Failure, Refusal, Reply, reply_to
from services.script_sandbox.bridge.checkpoint import (
    Paused,
    UnusableCheckpoint,
    read_checkpoint,
    write_checkpoint,
)
from services.script_sandbox.bridge.faults import ProtocolFault
from services.script_sandbox.bridge.inbox import Inbox
from services.script_sandbox.bridge.prelude_values import prelude_values
from services.script_sandbox.bridge.requests import line_of, request_message
from services.script_sandbox.dialect import Refused, check_script
from services.script_sandbox.engine.interpreter import Interpreter
from services.script_sandbox.engine.outcomes import Asked, Died, Outcome, Raised, Ran, Stopped
from services.script_sandbox.engine.printed import Printed
from services.script_sandbox.engine.workers import Workers
from services.script_sandbox.limits import Limits
from services.script_sandbox.lowering import Program, lower

# Shorter scripts are checked where they arrive; the check of a long one takes tens of milliseconds.
_SHORT = 1_000

_log = structlog.get_logger(__name__)


class ScriptRun:
    """Runs one script and speaks its side of the stream.

    Args:
        workers: Where interpreters come from.
        limits: Of the service; the start may lower them.
        start: What to run.
        inputs: The texts of `inputs`; None provides no such name.
        inbox: What the caller says.
    """

    def __init__(
        self, workers: Workers, limits: Limits, start: pb.ScriptStart, inputs: list[str] | None, inbox: Inbox
    ) -> None:
        self._workers = workers
        self._limits = limits.lowered_to(start.limits)
        self._narrowed = self._limits != limits
        self._start = start
        self._inputs = inputs
        self._inbox = inbox
        self._locale: Locale = locale_of(start.locale)
        self._printed = Printed(self._limits.printed_chars)
        self._deadline = asyncio.get_running_loop().time() + self._limits.total_seconds
        self._seq = 0

    async def messages(self) -> AsyncIterator[pb.FromSandbox]:
        """Everything the sandbox says of this script, in order.

        Raises:
            CallerGone: Nobody listens any more.
        """
        try:
            program = await self._checked()
        except Refused as refusal:
            yield pb.FromSandbox(rejected=pb.Rejected(line=refusal.line, reason=refusal.text(self._locale)))
            return
        async with AsyncExitStack() as held:
            try:
                async for message in self._running(program, held):
                    yield message
                return
            except TimeoutError:
                death = Died("total" if self._left() <= 0 else "alone")
            except ProtocolFault as fault:
                _log.warning("script_protocol_fault", problem=str(fault))
                death = Died("protocol")
            except (MontyError, OSError) as error:
                _log.warning("script_worker_lost", problem=type(error).__name__)
                death = Died("died")
            # The interpreter is gone before anybody reads that it is.
            await held.aclose()
            yield self._end(death)

    async def _checked(self) -> Program:
        script = self._start.script
        if len(script) <= _SHORT:
            return self._lowered(script)
        return await asyncio.to_thread(self._lowered, script)

    def _lowered(self, script: str) -> Program:
        checked = check_script(script, max_chars=self._limits.script_chars, inputs=self._inputs is not None)
        return lower(checked)

    async def _running(self, program: Program, held: AsyncExitStack) -> AsyncIterator[pb.FromSandbox]:
        resumed = await self._resumed(program, held)
        yield pb.FromSandbox(accepted=pb.Accepted(resumed=resumed is not None))
        if resumed is not None:
            interpreter, outcome = resumed
        else:
            interpreter = await self._interpreter(held)
            outcome = await self._alone(
                interpreter.begin(
                    program,
                    self._printed,
                    prelude_values(self._start, self._limits, self._locale),
                    {} if self._inputs is None else {"inputs": self._inputs},
                )
            )
        while isinstance(outcome, Asked):
            self._seq += 1
            request = request_message(self._seq, outcome)
            if self._start.checkpoints:
                checkpoint = self._checkpoint(interpreter)
                if checkpoint is not None:
                    yield checkpoint
            yield request
            reply = reply_to(request, await self._inbox.take(self._left()))
            if isinstance(reply, Refusal):
                yield endings.refused(reply.text, line_of(request), self._printed, self._locale)
                return
            outcome = await self._alone(_answered(interpreter, reply))
        yield self._end(outcome)

    async def _interpreter(self, held: AsyncExitStack, *, blank: bool = False) -> Interpreter:
        taking = held.enter_async_context(self._workers.interpreter(self._limits, blank=blank))
        interpreter = await self._inbox.meanwhile(taking, self._left())
        if self._narrowed:
            interpreter.limit_processor(self._limits.cpu_seconds)
        return interpreter

    async def _resumed(self, program: Program, held: AsyncExitStack) -> tuple[Interpreter, Outcome] | None:
        """The paused script at its request again; None to begin at its first line."""
        if not self._start.resume:
            return None
        try:
            paused = read_checkpoint(self._start.script, self._start.resume, self._limits.printed_chars)
        except UnusableCheckpoint as unusable:
            _log.warning("script_checkpoint_unusable", problem=str(unusable))
            return None
        trial = await held.enter_async_context(AsyncExitStack())
        interpreter = await self._interpreter(trial, blank=True)
        try:
            outcome = await self._alone(interpreter.resume(program, paused.printed, paused.dump))
        except (MontyError, ValueError):
            outcome = Died("died")
        if not isinstance(outcome, Asked):
            _log.warning("script_checkpoint_unusable", problem="the engine's dump")
            await trial.aclose()
            return None
        self._printed = paused.printed
        self._seq = paused.seq - 1
        return interpreter, outcome

    def _checkpoint(self, interpreter: Interpreter) -> pb.FromSandbox | None:
        paused = Paused(self._seq, self._printed, interpreter.dump())
        state = write_checkpoint(self._start.script, paused)
        if state is None:
            return None
        return pb.FromSandbox(checkpoint=pb.Checkpoint(seq=self._seq, state=state))

    async def _alone(self, moving: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Let the program run until it asks or ends."""
        return await self._inbox.meanwhile(moving, min(self._limits.alone_seconds, self._left()))

    def _left(self) -> float:
        return self._deadline - asyncio.get_running_loop().time()

    def _end(self, outcome: Ran | Raised | Stopped | Died) -> pb.FromSandbox:
        if isinstance(outcome, Ran):
            return endings.finished(outcome, self._printed, self._locale, 0.0)
        return endings.failed(outcome, self._printed, self._locale, self._limits)


async def _answered(interpreter: Interpreter, reply: Reply) -> Outcome:
    match reply:
        case Failure(text=text):
            return await interpreter.fail(text)
        case Refusal():
            raise ProtocolFault("a refusal has no answer")
        case _:
            return await interpreter.answer(reply.value)

"""One script on the wire: its start, its requests one after the other, its end (SCR-258 to 267).

The sandbox is taken for hostile. A request that is not the next one, comes before the last is
answered, or is no message of the protocol ends the script; nothing the sandbox counts is believed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import grpc
import grpc.aio
import structlog
from crew.v1 import script_sandbox_pb2 as pb
from crew.v1 import script_sandbox_pb2_grpc

from services.orchestrator.scripts.limits import OWN_SECONDS, PRINTED_CHARS, TOTAL_SECONDS
from services.orchestrator.store.script_checkpoints import Checkpoint
from services.orchestrator.store.scripts import Write

_log = structlog.get_logger(__name__)

# The sandbox ends a silent script itself; this is for a sandbox that does not.
_SLACK_SECONDS = 10.0
# Of a sentence the sandbox writes.
_SENTENCE_CHARS = 4_000

KilledBy = Literal["protocol", "died", "alone", "total", "unavailable"]


@dataclass(frozen=True, slots=True)
class Finished:
    """The script ran to its end."""

    printed: str
    printed_chars: int
    writes: Sequence[Write]


@dataclass(frozen=True, slots=True)
class Failed:
    """The script ended before its end; `message` says why, in the script's locale."""

    message: str
    printed: str = ""
    printed_chars: int = 0
    # Nothing of it ran.
    rejected: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A call the script may not make ended it: the reason without the line (SCR-051, SCR-086)."""

    line: int
    reason: str
    printed: str = ""
    printed_chars: int = 0


@dataclass(frozen=True, slots=True)
class Killed:
    """The script's process is gone or did not keep to its part: what was printed is lost."""

    by: KilledBy
    # Of the sandbox, where it could say more.
    message: str = ""


End = Finished | Failed | Refused | Killed


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer to a request that ends the script."""

    reason: str


class Keeping(Protocol):
    """Who keeps where a script stands, for a script that is to outlive its orchestrator."""

    def answered(self, seq: int, state: bytes | None, answer: pb.ToSandbox) -> None:
        """A request has its answer; `state` is the program at that request, None when none came."""

    def begins_anew(self) -> None:
        """The script could not go on where it stood."""


class ProtocolFault(Exception):
    """The sandbox said what no sandbox of ours says."""


class Answering(Protocol):
    """Who answers a script's requests."""

    async def answer(self, request: pb.FromSandbox) -> pb.ToSandbox | Refusal:
        """The answer to a request, made out with its ``seq``.

        Raises:
            ProtocolFault: The request is one that no script of the sandbox can make.
        """


class _Broken(Exception):
    def __init__(self, by: KilledBy, message: str = "") -> None:
        super().__init__(by)
        self.by: KilledBy = by
        self.message = message


_REQUESTS = frozenset({"tool_call", "batch_call", "lookup", "ask_model", "open_store"})


class Session:
    """Runs one script; used once.

    Args:
        stub: Of the sandbox.
        start: The first message.
        answering: Who answers.
        keeping: Who keeps checkpoints; None: none are asked for.
        resume: Where the script goes on.
        seconds: In all, waits for tools and models included.
        own_seconds: Of running without a request or an end.
    """

    def __init__(
        self,
        stub: script_sandbox_pb2_grpc.ScriptSandboxAsyncStub,
        start: pb.ScriptStart,
        answering: Answering,
        *,
        keeping: Keeping | None = None,
        resume: Checkpoint | None = None,
        seconds: float = TOTAL_SECONDS,
        own_seconds: float = OWN_SECONDS + _SLACK_SECONDS,
    ) -> None:
        self._stub = stub
        self._start = start
        self._answering = answering
        self._keeping = keeping
        self._resume = resume
        # Of the checkpoint that came for the next request.
        self._state: bytes | None = None
        self._seconds = seconds
        self._own_seconds = own_seconds
        self._ends_at = 0.0
        # Line and reason of the refusal that the script was given.
        self._refused: tuple[int, str] | None = None
        self._begun = False

    async def run(self) -> End:
        """Run the script to its end.

        Raises:
            asyncio.CancelledError: The turn was stopped; the script has been told.
        """
        self._ends_at = asyncio.get_running_loop().time() + self._seconds
        call = self._stub.Run(timeout=self._seconds + _SLACK_SECONDS)
        try:
            return await self._converse(call)
        except _Broken as broken:
            return Killed(broken.by, broken.message)
        except ProtocolFault as fault:
            _log.warning("script_sandbox_out_of_line", why=str(fault)[:200])
            return Killed("protocol")
        except grpc.aio.AioRpcError as error:
            return self._lost(error)
        except asyncio.InvalidStateError:
            # The stream ended while an answer was on its way.
            return Killed("died")
        finally:
            call.cancel()

    async def _converse(self, call: grpc.aio.StreamStreamCall[pb.ToSandbox, pb.FromSandbox]) -> End:
        await call.write(pb.ToSandbox(start=self._start))
        first = await self._read(asyncio.ensure_future(call.read()), self._seconds)
        match first.WhichOneof("message"):
            case "rejected":
                return Failed(first.rejected.reason[:_SENTENCE_CHARS], rejected=True)
            case "accepted":
                self._begun = True
                self._begins(first.accepted)
            case "failed":
                return self._failed(first.failed)
            case _:
                raise ProtocolFault("neither accepted nor rejected")
        seq = self._resume.seq - 1 if self._resume is not None else 0
        reading = asyncio.ensure_future(call.read())
        try:
            while True:
                message = await self._read(reading, self._own_seconds)
                kind = message.WhichOneof("message")
                if kind == "finished":
                    return self._finished(message.finished)
                if kind == "failed":
                    return self._failed(message.failed)
                if kind == "checkpoint":
                    self._checkpoint(message.checkpoint, seq + 1)
                    reading = asyncio.ensure_future(call.read())
                    continue
                if kind not in _REQUESTS:
                    raise ProtocolFault(f"no request: {kind}")
                seq += 1
                request: Any = getattr(message, kind)
                if request.seq != seq or self._refused is not None:
                    raise ProtocolFault("a request out of turn")
                reading = asyncio.ensure_future(call.read())
                answer = await self._answer(message, reading)
                if isinstance(answer, Refusal):
                    self._refused = (request.line, answer.reason)
                    answer = pb.ToSandbox(refuse=pb.RefuseRequest(seq=seq, text=answer.reason))
                elif self._keeping is not None:
                    self._keeping.answered(seq, self._state, answer)
                self._state = None
                await call.write(answer)
        finally:
            reading.cancel()

    def _begins(self, accepted: pb.Accepted) -> None:
        if accepted.resumed and self._resume is None:
            raise ProtocolFault("goes on where nothing was")
        if self._resume is not None and not accepted.resumed:
            self._resume = None
            if self._keeping is not None:
                self._keeping.begins_anew()

    def _checkpoint(self, checkpoint: pb.Checkpoint, seq: int) -> None:
        if self._keeping is None or self._state is not None or checkpoint.seq != seq:
            raise ProtocolFault("a checkpoint that nobody asked for")
        self._state = checkpoint.state

    async def _answer(self, message: pb.FromSandbox, reading: asyncio.Future[Any]) -> pb.ToSandbox | Refusal:
        """The answer; whatever the sandbox says before it has it ends the script.

        A request that was answered before a restart gets the same answer. Calls that run when the
        sandbox is gone run to their end: what they do is not undone by leaving them.
        """
        if self._resume is not None:
            kept, self._resume = self._resume, None
            return pb.ToSandbox.FromString(kept.answer)
        answering = asyncio.ensure_future(self._answering.answer(message))
        try:
            await asyncio.wait(
                {answering, reading}, timeout=self._left(), return_when=asyncio.FIRST_COMPLETED
            )
            if not answering.done() and not reading.done():
                raise _Broken("total")
            if reading.done():
                await asyncio.wait({answering}, timeout=self._left())
                early = await self._read(reading, 0)
                if early.WhichOneof("message") == "failed":
                    raise _Broken("died", self._failed_sentence(early.failed))
                raise ProtocolFault("a message before the answer")
            return await answering
        finally:
            if not answering.done():
                answering.cancel()
                await asyncio.wait({answering})

    async def _read(self, reading: asyncio.Future[Any], seconds: float) -> pb.FromSandbox:
        left = self._left()
        await asyncio.wait({reading}, timeout=max(0.0, min(seconds, left)))
        if not reading.done():
            reading.cancel()
            raise _Broken("total" if self._left() <= 0 else "alone")
        message = reading.result()
        if message is grpc.aio.EOF:
            raise _Broken("died")
        assert isinstance(message, pb.FromSandbox)
        return message

    def _left(self) -> float:
        return self._ends_at - asyncio.get_running_loop().time()

    def _finished(self, finished: pb.ScriptFinished) -> End:
        printed, chars = _printed(finished.printed, finished.printed_chars)
        writes = [
            Write(write.key, write.json if write.HasField("json") else None) for write in finished.writes
        ]
        if self._refused is not None:
            # It was told to stop and says that it went on.
            raise ProtocolFault("finished after a refusal")
        return Finished(printed, chars, writes)

    def _failed(self, failed: pb.ScriptFailed) -> End:
        if failed.kind == pb.SCRIPT_FAILURE_KIND_KILLED:
            return Killed("died", self._failed_sentence(failed))
        printed, chars = _printed(failed.printed, failed.printed_chars)
        if self._refused is not None:
            line, reason = self._refused
            return Refused(line, reason, printed, chars)
        if failed.kind not in (pb.SCRIPT_FAILURE_KIND_ERROR, pb.SCRIPT_FAILURE_KIND_LIMIT):
            raise ProtocolFault("an end that nobody ordered")
        return Failed(self._failed_sentence(failed), printed, chars)

    def _failed_sentence(self, failed: pb.ScriptFailed) -> str:
        return failed.message[:_SENTENCE_CHARS]

    def _lost(self, error: grpc.aio.AioRpcError) -> Killed:
        """What a broken call means: a sandbox that refuses says why, any other is gone."""
        match error.code():
            case grpc.StatusCode.FAILED_PRECONDITION:
                return Killed("unavailable", (error.details() or "")[:_SENTENCE_CHARS])
            case grpc.StatusCode.UNAVAILABLE if not self._begun:
                return Killed("unavailable")
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return Killed("total")
            case grpc.StatusCode.RESOURCE_EXHAUSTED | grpc.StatusCode.INTERNAL:
                return Killed("protocol")
            case _:
                return Killed("died")


def _printed(text: str, said: int) -> tuple[str, int]:
    """What was printed, as far as it may be kept, and how much it was in all.

    Raises:
        ProtocolFault: More than is kept, or a length that does not go with it.
    """
    if len(text) > PRINTED_CHARS:
        raise ProtocolFault("more printed than is kept")
    if said <= PRINTED_CHARS and said != len(text):
        raise ProtocolFault("a length that is not that of the text")
    if said > PRINTED_CHARS and str(said) not in text:
        raise ProtocolFault("a longer text without its mark")
    return text, said

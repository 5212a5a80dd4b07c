"""One Run call on the wire: start, progress, asks, a stop, the result."""

from __future__ import annotations

import asyncio
import contextlib
import time

import grpc
import grpc.aio
import structlog
from crew.v1 import toolhost_pb2 as pb
from crew.v1 import toolhost_pb2_grpc

from services.common.toolhost import exact_json, wire
from services.common.toolhost.contract import ToolResult
from services.orchestrator.hosts.contract import CANCEL_SECONDS, HostRun

_log = structlog.get_logger(__name__)

# Progress reports of one call; more are dropped.
_MOST_PROGRESS = 10_000


class RunFailed(Exception):
    """A Run call that ended without a result.

    Attributes:
        code: Of the failure.
        unresponsive: The host did not answer a stop in time (PIP-042).
    """

    def __init__(self, code: grpc.StatusCode, *, unresponsive: bool = False) -> None:
        super().__init__(code.name)
        self.code = code
        self.unresponsive = unresponsive


async def run_once(stub: toolhost_pb2_grpc.ToolHostAsyncStub, run: HostRun, seconds: float) -> ToolResult:
    """Make the call once.

    Args:
        stub: Of the host.
        run: What to run.
        seconds: Deadline of this attempt.

    Raises:
        RunFailed: No result came.
    """
    call = stub.Run(timeout=seconds)
    conversation = asyncio.create_task(_converse(call, run))
    stopped = asyncio.create_task(run.stop.wait())
    try:
        await asyncio.wait({conversation, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not conversation.done():
            await _ask_to_stop(call)
            await asyncio.wait({conversation}, timeout=CANCEL_SECONDS)
            if not conversation.done():
                raise RunFailed(grpc.StatusCode.CANCELLED, unresponsive=True)
        return await conversation
    except grpc.aio.AioRpcError as error:
        raise RunFailed(error.code()) from error
    except wire.MalformedMessage as error:
        _log.warning("host_spoke_nonsense", tool=run.spec.name, why=str(error)[:200])
        raise RunFailed(grpc.StatusCode.DATA_LOSS) from error
    finally:
        stopped.cancel()
        conversation.cancel()
        call.cancel()


async def _converse(call: grpc.aio.StreamStreamCall[pb.RunInput, pb.RunOutput], run: HostRun) -> ToolResult:
    start = pb.RunStart(
        context=wire.context_to_wire(run.context),
        tool=run.spec.name,
        arguments_json=exact_json.dumps(run.arguments),
        token=run.token,
        target_state=run.target_state,
    )
    await call.write(pb.RunInput(start=start))
    assembler = wire.ResultAssembler()
    reports = 0
    while True:
        output = await call.read()
        if output is grpc.aio.EOF:
            code = await call.code()
            raise RunFailed(code if code is not grpc.StatusCode.OK else grpc.StatusCode.DATA_LOSS)
        assert isinstance(output, pb.RunOutput)
        match output.WhichOneof("output"):
            case "progress":
                reports += 1
                if reports <= _MOST_PROGRESS:
                    await run.progress(output.progress.text, _details(output.progress.details_json))
            case "part":
                assembler.add(output.part)
            case "ask":
                # Hosts of this crew ask nothing yet; one that does is told so and goes on without.
                answer = pb.AskAnswer(ask_id=output.ask.ask_id, json='{"error":"not offered"}', is_error=True)
                await call.write(pb.RunInput(answer=answer))
            case "result":
                return assembler.finish(output.result)
            case _:
                continue


def _details(text: str) -> dict[str, object]:
    try:
        return exact_json.loads_object(text)
    except ValueError:
        return {}


async def _ask_to_stop(call: grpc.aio.StreamStreamCall[pb.RunInput, pb.RunOutput]) -> None:
    try:
        await call.write(pb.RunInput(cancel=pb.RunCancel()))
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
        # The call is over already; its reader says how.
        return


async def noticed_loss(channel: grpc.aio.Channel, seconds: float) -> None:
    """Wait until `channel` itself knows that its connection is gone, at most for `seconds`.

    A call fails before the channel's state follows; who asked for the state right then would take
    the dead connection for a new one.
    """
    state = channel.get_state()
    if state is not grpc.ChannelConnectivity.READY:
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await channel.wait_for_state_change(state)


async def connected_within(channel: grpc.aio.Channel, seconds: float, stop: asyncio.Event) -> bool:
    """Whether `channel` has a connection, now or within `seconds`; a stop ends the wait."""
    ends_at = time.monotonic() + seconds
    while True:
        state = channel.get_state(try_to_connect=True)
        if state is grpc.ChannelConnectivity.READY:
            return True
        left = ends_at - time.monotonic()
        if left <= 0 or stop.is_set() or state is grpc.ChannelConnectivity.SHUTDOWN:
            return False
        changed = asyncio.ensure_future(channel.wait_for_state_change(state))
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({changed, stopped}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            stopped.cancel()

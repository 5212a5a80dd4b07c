"""A tool host over real gRPC for tests, and a caller of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
from crew.v1 import toolhost_pb2 as pb
from crew.v1 import toolhost_pb2_grpc

from services.common.rpc import RpcServer
from services.common.rpc.client import DirectedChannel
from services.common.toolhost import wire
from services.common.toolhost.contract import CallContext, Tool, ToolResult, Verdict, WorkspaceGrant
from services.common.toolhost.once import CallLedger
from services.common.toolhost.server import ReleaseHook, ToolHostServicer
from services.common.wording import load


def context_of(root: Path | str = "/nowhere", **fields: Any) -> CallContext:
    grant = fields.pop("workspace", None) or WorkspaceGrant(root=str(root))
    values = {"agent_id": "default", "conversation_id": "c1", "run_id": "r1", "call_id": "k1", **fields}
    return CallContext(workspace=grant, **values)


@dataclass
class Answer:
    result: ToolResult
    progress: list[pb.RunProgress]


class Caller:
    """What the orchestrator does with a host, as plainly as it can be done."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.stub = toolhost_pb2_grpc.ToolHostStub(channel)

    async def open(
        self,
        context: CallContext,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        target_state: str = "",
        timeout: float = 60,
    ) -> Any:
        """Begin a call; further inputs are written to what is returned."""
        call = self.stub.Run(timeout=timeout)
        start = pb.RunStart(
            context=wire.context_to_wire(context),
            tool=tool,
            arguments_json=wire.arguments_to_wire(arguments),
            target_state=target_state,
        )
        await call.write(pb.RunInput(start=start))
        return call

    async def finish(self, call: Any) -> Answer:
        assembler, progress = wire.ResultAssembler(), []
        async for output in call:
            match output.WhichOneof("output"):
                case "progress":
                    progress.append(output.progress)
                case "part":
                    assembler.add(output.part)
                case "result":
                    return Answer(assembler.finish(output.result), progress)
        raise AssertionError("the host gave no result")

    async def run(
        self, context: CallContext, tool: str, arguments: Mapping[str, Any], **more: Any
    ) -> ToolResult:
        return (await self.finish(await self.open(context, tool, arguments, **more))).result

    async def judge(self, context: CallContext, tool: str, arguments: Mapping[str, Any]) -> Verdict:
        return wire.verdict_from_wire(
            await self.stub.Judge(
                pb.JudgeRequest(
                    context=wire.context_to_wire(context),
                    tool=tool,
                    arguments_json=wire.arguments_to_wire(arguments),
                ),
                timeout=30,
            )
        )


@asynccontextmanager
async def serving(
    folder: Path, tools: Sequence[Tool], *, on_release: Sequence[ReleaseHook] = ()
) -> AsyncIterator[Caller]:
    """Serve `tools` on a socket in `folder`; the record of calls is in it too."""
    ledger = CallLedger(folder / "state" / "calls.sqlite")
    server = RpcServer(f"unix:{folder}/host.sock", catalogue=load("common"), verifier=None)
    toolhost_pb2_grpc.add_ToolHostServicer_to_server(
        ToolHostServicer(tools, ledger, isolation="os", on_release=on_release), server.grpc
    )
    await server.start()
    async with DirectedChannel(f"unix:{folder}/host.sock") as channel:
        try:
            yield Caller(channel)
        finally:
            await server.stop(1.0)
            await ledger.close()

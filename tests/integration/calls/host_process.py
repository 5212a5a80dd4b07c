"""A tool host in a process of its own: ``python -m tests.integration.calls.host_process SOCKET DIR``.

Its tools do what their arguments say; what took effect is told by files in DIR.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crew.v1 import toolhost_pb2_grpc

from services.common.rpc import RpcServer
from services.common.toolhost.contract import (
    CallContext,
    NoOpinion,
    Routine,
    Run,
    ToolResult,
    ToolSpec,
    Verdict,
    text_result,
)
from services.common.toolhost.once import CallLedger
from services.common.toolhost.phases import Phases
from services.common.toolhost.server import ToolHostServicer
from services.common.wording import load

PARAMETERS = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "wait": {"type": "boolean"}, "judge": {"type": "string"}},
    "additionalProperties": False,
}


class Act:
    """Leaves a mark, perhaps waits, and answers."""

    def __init__(self, folder: Path, name: str, **flags: Any) -> None:
        self.name = name
        self._folder = folder
        self._flags = flags

    def spec(self, locale: str) -> ToolSpec:
        fields = {"kind": "read", "effect": "read", "judges": True, **self._flags}
        return ToolSpec(self.name, f"{self.name} ({locale})", PARAMETERS, self.name, **fields)

    def offered_to(self, mode: str, settings: Mapping[str, Any]) -> bool:
        return True

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return arguments

    async def judge(self, context: Any, arguments: Mapping[str, Any]) -> Verdict:
        match arguments.get("judge"):
            case "hang":
                await asyncio.Event().wait()
            case "fail":
                raise RuntimeError("a bug in the host")
            case "routine":
                return Routine("allow list")
        return NoOpinion()

    async def run(self, run: Run) -> ToolResult:
        marks = self._folder / self.name
        with marks.open("a") as file:
            file.write(f"{run.context.call_id}\n")
        await run.progress(f"{self.name} has begun")
        if run.arguments.get("wait") and not (self._folder / "go").exists():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                (self._folder / f"{self.name}.ended").touch()
                return text_result("half of it", is_error=True, outcome="unknown")
        return text_result(str(run.arguments.get("text", "done")))


class Send(Act):
    """Acts in two phases; its effect is a mark."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            folder, "send", kind="change", effect="change", requires_approval=True, two_phase=True
        )
        self._phases = Phases("send")

    async def judge(self, context: CallContext, arguments: Mapping[str, Any]) -> Verdict:
        verdict = await super().judge(context, arguments)
        if arguments.get("judge") == "no preview" or not isinstance(verdict, NoOpinion):
            return verdict
        return NoOpinion(f"To send: {arguments.get('text')}", self._phases.token(context, arguments))

    async def run(self, run: Run) -> ToolResult:
        self._phases.check(run)
        return await super().run(run)


async def main(socket: str, folder: Path) -> None:
    server = RpcServer(f"unix:{socket}", catalogue=load("common"), verifier=None)
    tools = [
        Act(folder, "look", replay_safe=True, parallel=True),
        Act(folder, "change", kind="change", effect="change", requires_approval=True),
        Send(folder),
    ]
    servicer = ToolHostServicer(tools, CallLedger(folder / "calls.sqlite"), isolation="os")
    toolhost_pb2_grpc.add_ToolHostServicer_to_server(servicer, server.grpc)
    await server.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

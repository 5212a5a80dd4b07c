"""How the script sandbox is, for Health and Connections; scripts themselves go another way."""

from __future__ import annotations

import grpc
import grpc.aio
from crew.v1 import script_sandbox_pb2 as pb
from crew.v1 import script_sandbox_pb2_grpc

from services.common.wording import Locale, load
from services.orchestrator.hosts.contract import HostState

NAME = "script_sandbox"
_SECONDS = 3.0


class ScriptSandboxState:
    """Asks the script sandbox which fence holds there.

    Args:
        channel: To the service, with the token of this direction.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = script_sandbox_pb2_grpc.ScriptSandboxStub(channel)

    async def state(self, locale: Locale) -> HostState:
        """How it is now; a service that does not answer is a state, not an error."""
        try:
            said = await self._stub.Describe(pb.DescribeSandboxRequest(locale=locale), timeout=_SECONDS)
        except grpc.aio.AioRpcError as error:
            note = load("common", "orchestrator").text(
                locale, "health.script_sandbox_down", problem=error.code().name
            )
            return HostState(NAME, "unreachable", note=note)
        proven = said.form != "none"
        return HostState(
            NAME,
            "ready",
            isolation="os" if proven else "none",
            isolation_note=said.note,
            note="" if proven else said.note,
        )

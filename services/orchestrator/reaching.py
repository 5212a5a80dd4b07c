"""What the orchestrator reaches over channels, as the settings name it: tool hosts and the script sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from services.common.rpc import DirectedChannel, connect
from services.common.settings import OrchestratorSettings
from services.common.start import StartError
from services.common.toolhost.contract import Tool
from services.common.wording import load
from services.orchestrator.calls.registry import OfferedHost
from services.orchestrator.hosts.local import LocalToolHost
from services.orchestrator.hosts.own import OWN_HOST
from services.orchestrator.hosts.remote import RemoteToolHost


def script_sandbox(settings: OrchestratorSettings) -> DirectedChannel | None:
    """The channel to the script sandbox, where there is one."""
    if not settings.script_sandbox_address:
        return None
    return connect(
        settings.script_sandbox_address,
        caller="orchestrator",
        called="script_sandbox",
        secrets_dir=settings.secrets_dir,
    )


def tool_hosts(
    settings: OrchestratorSettings, own_tools: Sequence[Tool]
) -> tuple[list[DirectedChannel], list[OfferedHost]]:
    """The tools service, this process's own tools, and what the owner added."""
    tools = connect(
        settings.tools_address, caller="orchestrator", called="tools", secrets_dir=settings.secrets_dir
    )
    channels = [tools]
    hosts = [
        OfferedHost(RemoteToolHost("tools", tools)),
        OfferedHost(LocalToolHost(OWN_HOST, own_tools)),
    ]
    for name, entry in settings.config.values.tool_hosts.items():
        token_file = entry.token_file if entry.token_file.is_absolute() else settings.home / entry.token_file
        try:
            token = token_file.read_text("utf-8").strip()
        except OSError:
            raise StartError(
                "error.start.host_token", catalogue=load("common", "orchestrator"), name=name, file=token_file
            ) from None
        channel = DirectedChannel(entry.address, token=token)
        channels.append(channel)
        hosts.append(
            OfferedHost(RemoteToolHost(name, channel, trusted=entry.trust), agents=frozenset(entry.agents))
        )
    return channels, hosts

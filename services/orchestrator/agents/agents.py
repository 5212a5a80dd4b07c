"""The agents of a home, loaded at the start and again when asked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from services.common.settings.config import CrewConfig
from services.common.start import StartError
from services.common.toolhost.contract import WorkspaceGrant
from services.common.wording import load
from services.orchestrator.agents.file import FILE_NAME
from services.orchestrator.agents.home import CONFIG_NAME, create_home, make_folder, make_workspace
from services.orchestrator.agents.profile import MASTER_ID, POLICY_NAME, Agent
from services.orchestrator.agents.resolving import Crew, resolve

_ID = re.compile(r"[a-z0-9-]{1,64}")
# Closed to every file tool of every agent (TLS-202).
_PRIVATE_FOLDERS = ("browser", "desktop")
# An agent whose workspace holds the home must reach neither keys nor what sets its own limits.
_PRIVATE_FILES = ("env", "secrets", "backups", CONFIG_NAME)


class Agents:
    """Who is in the crew.

    Args:
        home: The home folder.
        config: The crew's settings.
        usable: Whether a route's provider can be asked at all.
        closed_ports: TCP ports of the crew itself, closed to sandboxed commands.
        private_paths: More paths closed to every file tool, such as folders of secrets.
    """

    def __init__(
        self,
        home: Path,
        config: CrewConfig,
        *,
        usable: Callable[[str], bool] = lambda _: True,
        closed_ports: Sequence[int] = (),
        private_paths: Sequence[Path] = (),
    ) -> None:
        self._crew = Crew(home, config, usable)
        self._closed_ports = tuple(closed_ports)
        own = [home / name for name in (*_PRIVATE_FOLDERS, *_PRIVATE_FILES)]
        self._private_paths = tuple(str(path) for path in (*own, *private_paths))
        self._profile_paths: tuple[str, ...] = ()
        self._agents: Mapping[str, Agent] = {}

    @property
    def home(self) -> Path:
        """The home folder."""
        return self._crew.home

    def load(self) -> None:
        """Make what the home lacks and read every profile, the master's first (AGT-080).

        Blocks on files: called before anything is served.

        Raises:
            StartError: A file or folder is not allowed; nothing is kept of what was read.
        """
        create_home(self._crew.home, self._crew.config.language)
        loaded = {agent_id: resolve(self._crew, agent_id) for agent_id in self._ids()}
        for agent in loaded.values():
            make_folder(agent.folder / "memory")
            make_workspace(agent.workspace, self._crew.config.umask)
        self._profile_paths = tuple(
            str(agent.folder / name) for agent in loaded.values() for name in (FILE_NAME, POLICY_NAME)
        )
        self._agents = loaded

    async def reload(self) -> Sequence[str]:
        """Read every profile again; agents as they were stay when one is not allowed.

        Returns:
            Why nothing changed, in the crew's language; empty when all is read.
        """
        try:
            await asyncio.to_thread(self.load)
        except StartError as error:
            return [error.text(self._crew.config.language)]
        return []

    def list(self) -> list[Agent]:
        """All agents, the master first, then by id."""
        return list(self._agents.values())

    def get(self, agent_id: str) -> Agent | None:
        """The agent of this id, or None."""
        return self._agents.get(agent_id)

    @property
    def master(self) -> Agent:
        """The agent people talk to when they name none."""
        return self._agents[MASTER_ID]

    def warnings(self) -> Sequence[str]:
        """What was passed over in the profiles, one sentence each."""
        return [warning for agent in self._agents.values() for warning in agent.warnings]

    def workspace_grant(self, agent: Agent) -> WorkspaceGrant:
        """What the calls of `agent` may touch."""
        return WorkspaceGrant(
            root=str(agent.workspace),
            write_paths=agent.write_paths,
            private_paths=(*self._private_paths, *self._profile_paths),
            shell_network=agent.shell_network,
            shell_write_paths=agent.shell_write_paths,
            ask_patterns=agent.shell_ask_patterns,
            allow_patterns=agent.shell_allow_patterns,
            deny_patterns=agent.shell_deny_patterns,
            closed_ports=self._closed_ports,
            limits=agent.shell_limits,
            umask=self._crew.config.umask,
        )

    def _ids(self) -> Sequence[str]:
        """The master, then the folders under ``agents/`` by id (AGT-007, 008)."""
        folder = self._crew.home / "agents"
        found = []
        for entry in sorted(folder.iterdir()):
            if entry.name.startswith(".") or not entry.is_dir():
                continue
            if entry.name == MASTER_ID or not _ID.fullmatch(entry.name):
                key = "agents.start.reserved_id" if entry.name == MASTER_ID else "agents.start.bad_id"
                raise StartError(key, catalogue=load("orchestrator"), path=repr(str(entry)))
            found.append(entry.name)
        return [MASTER_ID, *found]

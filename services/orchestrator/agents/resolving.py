"""From a profile, its mode and the crew's settings to an `Agent`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath
from typing import TypeVar

from services.common.settings.config import CrewConfig
from services.common.start import StartError
from services.common.toolhost.contract import ShellLimits
from services.common.wording import load
from services.orchestrator.agents.file import FILE_NAME, AgentFile, read_agent_file
from services.orchestrator.agents.profile import MASTER_ID, Agent, ReviewRule
from services.orchestrator.agents.runners import RUNNERS

T = TypeVar("T")

# What `mode: work` changes when the profile does not say otherwise (AGT-073).
_WORK_COST_CAP_USD = 20.0
_WORK_MAX_STEPS = 120
# Would let every command through (AGT-025).
_WILDCARDS = frozenset({"*", ".*", ".", "-", "--", "/", "&&", "||", ";", "|"})


@dataclass(frozen=True, slots=True)
class Crew:
    """What all agents of a home have in common."""

    home: Path
    config: CrewConfig
    # Whether a route's provider can be asked at all.
    usable: Callable[[str], bool]

    def folder_of(self, agent_id: str) -> Path:
        """Where an agent's files are: the home itself for the master (AGT-079)."""
        return self.home if agent_id == MASTER_ID else self.home / "agents" / agent_id


def resolve(crew: Crew, agent_id: str) -> Agent:
    """Read an agent's profile and decide every setting.

    Raises:
        StartError: The profile is not allowed; the sentence names file and key.
    """
    folder = crew.folder_of(agent_id)
    path = folder / FILE_NAME
    written, declared = read_agent_file(path)
    return _Resolving(crew, agent_id, folder, path, written).agent(declared)


class _Resolving:
    def __init__(self, crew: Crew, agent_id: str, folder: Path, path: Path, written: AgentFile) -> None:
        self._crew = crew
        self._config = crew.config
        self._id = agent_id
        self._folder = folder
        self._path = path
        self._written = written
        self._warnings: list[str] = []

    def agent(self, declared: dict[str, object]) -> Agent:
        written, config = self._written, self._config
        work = written.mode == "work"
        routes = self._routes()
        workspace = self._workspace()
        return Agent(
            id=self._id,
            name=written.name or self._id,
            description=written.description,
            mode=written.mode,
            folder=self._folder,
            home=self._crew.home,
            timezone=config.timezone,
            workspace=workspace,
            routes=routes,
            escalation_route=self._escalation(routes),
            reasoning=written.reasoning,
            tools=written.tools,
            max_steps=_first(written.max_steps, _WORK_MAX_STEPS if work else config.max_steps),
            max_minutes=written.max_minutes,
            cost_cap_usd=_first(written.cost_cap_usd, _WORK_COST_CAP_USD if work else config.cost_cap_usd),
            autonomous=_first(written.autonomous, work or config.autonomous_default),
            tool_output_chars=_first(written.tool_output_chars, config.tool_output_chars),
            own_output_ceiling=written.tool_output_chars is not None,
            tool_execution=written.tool_execution or config.tool_execution,
            script_calls=written.script_calls,
            script_llm=written.script_llm,
            review=self._review(),
            persona_files=self._persona_files(),
            write_paths=self._inside("write_paths", written.write_paths, workspace),
            shell_network=written.shell_network,
            shell_write_paths=self._inside("shell_write_paths", written.shell_write_paths, workspace),
            shell_ask_patterns=_first(written.shell_ask_patterns, config.shell_ask_patterns),
            shell_allow_patterns=self._allow_patterns(),
            shell_deny_patterns=written.shell_deny_patterns,
            shell_limits=ShellLimits(**written.shell_limits.model_dump()),
            declared=declared,
            warnings=tuple(self._warnings),
        )

    def _routes(self) -> tuple[str, ...]:
        """The agent's own routes, or the shared ones when none of them can be asked (AGT-039)."""
        own = self._written.routes
        if not own:
            return self._config.routes
        if any(self._crew.usable(route) for route in own):
            return own
        self._warn("agents.warning.routes_unusable", key="routes")
        return self._config.routes

    def _escalation(self, routes: Sequence[str]) -> str | None:
        route = self._written.escalation_route
        if route is None:
            return None
        if route in routes:
            self._warn("agents.warning.escalation_same", key="escalation_route", route=route)
            return None
        if not self._crew.usable(route):
            self._warn("agents.warning.escalation_unusable", key="escalation_route", route=route)
            return None
        return route

    def _review(self) -> tuple[ReviewRule, ...]:
        """The rules as written: one whose model cannot be asked stays, and its calls ask (PIP-101)."""
        rules = [ReviewRule(**entry.model_dump()) for entry in self._written.review]
        for route in dict.fromkeys(rule.route for rule in rules):
            if not self._crew.usable(route):
                self._warn("agents.warning.review_unusable", key="review", route=route)
        return tuple(rules)

    def _workspace(self) -> Path:
        """Where the agent works (AGT-077); with `workspaces_dir`, its place on that volume."""
        written = Path(self._written.workspace).expanduser()
        natural = Path(normpath(self._folder / written))
        volume = self._config.workspaces_dir
        if volume is None:
            return natural
        agents = self._crew.home / "agents"
        if natural == self._crew.home / "workspace":
            return volume / MASTER_ID
        if natural.name == "workspace" and natural.parent.parent == agents:
            return volume / natural.parent.name
        if natural.is_relative_to(volume):
            return natural
        raise self._refusal("agents.start.workspace_place", "workspace", value=natural, volume=volume)

    def _persona_files(self) -> tuple[str, ...]:
        for name in self._written.persona_files:
            if not name or "/" in name or "\0" in name or name in {".", ".."}:
                raise self._refusal("agents.start.persona_file", "persona_files", value=name[:100])
        return self._written.persona_files

    def _inside(self, key: str, paths: Sequence[str], workspace: Path) -> tuple[str, ...]:
        """`paths` relative to the workspace (AGT-049, 051)."""
        inside = []
        for path in paths:
            full = Path(normpath(workspace / path)) if path and "\0" not in path else None
            if full is None or not full.is_relative_to(workspace):
                raise self._refusal("agents.start.path_outside", key, value=path[:200])
            inside.append(str(full.relative_to(workspace)))
        return tuple(inside)

    def _allow_patterns(self) -> tuple[str, ...]:
        """Without entries that would allow everything (AGT-025, FLD-019)."""
        kept = []
        for pattern in _first(self._written.shell_allow_patterns, self._config.shell_allow_patterns):
            plain = pattern.strip()
            if len(plain) < 2 or plain in _WILDCARDS or plain.rsplit("/", 1)[-1] in RUNNERS:
                self._warn("agents.warning.allow_pattern", key="shell_allow_patterns", pattern=pattern[:100])
            else:
                kept.append(pattern)
        return tuple(kept)

    def _warn(self, text_key: str, **values: object) -> None:
        text = load("orchestrator").text(self._config.language, text_key, file=self._path, **values)
        self._warnings.append(text)

    def _refusal(self, text_key: str, key: str, **values: object) -> StartError:
        return StartError(text_key, catalogue=load("orchestrator"), file=self._path, key=key, **values)


def _first(written: T | None, otherwise: T) -> T:
    return otherwise if written is None else written

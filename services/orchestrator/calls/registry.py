"""All tools of all hosts, and which of them an agent holds (TLS-036 to 045, PIP-117)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import structlog

from services.common.toolhost.contract import Mode, ToolSpec
from services.common.wording import Locale, load
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls.arguments.schema import compiled
from services.orchestrator.calls.toolbox import HeldTool, Toolbox
from services.orchestrator.hosts.contract import Audience, HostState, Released, ToolHost

_log = structlog.get_logger(__name__)

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Names a script uses for its own purposes (TLS-011).
_RESERVED = frozenset({"names", "search", "describe", "batch"})
# Held or not by a key of their own, whatever `tools:` says (TLS-040 to 042).
_OWN_KEY = {"browser_": "browser", "computer_": "computer"}
_UNLISTED = frozenset({"tool_search", "tool_script"})
_MCP_PREFIX = "mcp__"
# Exists only with a vision route; naming it is no mistake (TLS-039).
_WITHOUT_WARNING = frozenset({"image_read"})


@dataclass(frozen=True, slots=True)
class OfferedHost:
    """A host and who may use it."""

    host: ToolHost
    # Ids of agents; empty: all.
    agents: frozenset[str] = frozenset()
    # Of the agents' profiles, for this host's tools.
    settings: Mapping[str, Any] = field(default_factory=dict)

    def serves(self, agent_id: str) -> bool:
        """Whether the agent may have its tools."""
        return not self.agents or agent_id in self.agents


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool as the owner sees it: who holds it and where it runs (TLS-391, 392)."""

    spec: ToolSpec
    host: str
    agents: Sequence[str]


# Describes a tool by what else its holder holds; None: the agent does not hold it.
Derived = Callable[[Agent, ToolSpec, Sequence[HeldTool], Locale], ToolSpec | None]


class ToolRegistry:
    """What the hosts describe, by name.

    Args:
        hosts: In the order in which their tools are declared; of two tools with one name the first
            host's is taken.
        derived: Tools that follow from the others an agent holds. They stand after the built-in
            tools and before those of MCP servers (TLS-004).
    """

    def __init__(self, hosts: Sequence[OfferedHost], *, derived: Mapping[str, Derived] | None = None) -> None:
        self._hosts = hosts
        self._derived = derived or {}
        self._warned: set[tuple[str, str, str]] = set()

    async def toolbox(self, agent: Agent, locale: Locale) -> Toolbox:
        """The tools `agent` holds now.

        Asked before each model call, so that a tool taken away is gone with the next one. Hosts
        that do not answer keep the tools they last described; none of them takes away another's.
        """
        held = await self._offered(agent, locale, agent.mode)
        if agent.tools:
            allowed = set(agent.tools)
            held = [tool for tool in held if tool.spec.name in allowed or not _listed(tool.spec.name)]
        return Toolbox(tuple(self._with_derived(agent, held, locale)))

    async def warnings(self, agent: Agent, locale: Locale) -> list[str]:
        """What the agent's `tools:` names in vain, one sentence a name (TLS-037 to 041)."""
        if not agent.tools:
            return []
        held = set((await self.toolbox(agent, locale)).names)
        known: set[str] = set()
        for mode in get_args(Mode):
            known.update(tool.spec.name for tool in await self._offered(agent, locale, mode))
        words = load("orchestrator")
        found = []
        for name in dict.fromkeys(agent.tools):
            key = next((key for prefix, key in _OWN_KEY.items() if name.startswith(prefix)), None)
            if key is not None:
                found.append(words.text(locale, "agents.tools.own_key", agent=agent.id, tool=name, key=key))
            elif name in _WITHOUT_WARNING or name in held:
                continue
            elif name in known:
                found.append(words.text(locale, "agents.tools.gives_nothing", agent=agent.id, tool=name))
            else:
                found.append(words.text(locale, "agents.tools.unknown", agent=agent.id, tool=name))
        return found

    async def rows(self, agents: Sequence[Agent], locale: Locale) -> list[ToolRow]:
        """One row per tool that at least one agent holds, in the order tools are declared."""
        found: dict[str, tuple[HeldTool, list[str]]] = {}
        for agent in agents:
            for tool in (await self.toolbox(agent, locale)).tools:
                found.setdefault(tool.spec.name, (tool, []))[1].append(agent.id)
        return [ToolRow(tool.spec, tool.host.name, holders) for tool, holders in found.values()]

    async def tools_of(self, host: str, audience: Audience) -> list[str]:
        """Names of the tools that one host offers to `audience`."""
        return [
            spec.name
            for offered in self._hosts
            if offered.host.name == host
            for spec in await offered.host.describe(audience)
        ]

    async def look(self, agents: Sequence[Agent], locale: Locale) -> None:
        """Have every host describe itself to an agent that it serves, so that `states` is of now."""
        asked = []
        for offered in self._hosts:
            agent = next((agent for agent in agents if offered.serves(agent.id)), None)
            if agent is not None:
                asked.append(offered.host.describe(Audience(agent.id, locale, agent.mode, offered.settings)))
        await asyncio.gather(*asked)

    def states(self) -> list[HostState]:
        """How each host is, as far as is known without asking."""
        return [offered.host.state() for offered in self._hosts]

    async def release(self, kind: Released, name: str) -> None:
        """Tell every host that a turn, conversation or agent is gone."""
        await asyncio.gather(*(offered.host.release(kind, name) for offered in self._hosts))

    async def _offered(self, agent: Agent, locale: Locale, mode: Mode) -> list[HeldTool]:
        hosts = [offered for offered in self._hosts if offered.serves(agent.id)]
        described = await asyncio.gather(
            *(offered.host.describe(Audience(agent.id, locale, mode, offered.settings)) for offered in hosts)
        )
        held: dict[str, HeldTool] = {}
        for offered, specs in zip(hosts, described, strict=True):
            for spec in specs:
                fault = "name_taken" if spec.name in held else _fault(spec)
                if fault is None:
                    held[spec.name] = HeldTool(spec, offered.host)
                else:
                    self._warn_once(offered.host.name, spec.name, fault)
        return list(held.values())

    def _with_derived(self, agent: Agent, tools: Sequence[HeldTool], locale: Locale) -> list[HeldTool]:
        derived = [tool for tool in tools if tool.spec.name in self._derived]
        held = [tool for tool in tools if tool.spec.name not in self._derived]
        place = next((n for n, tool in enumerate(held) if tool.spec.name.startswith(_MCP_PREFIX)), len(held))
        described = [
            replace(tool, spec=spec)
            for tool in derived
            if (spec := self._derived[tool.spec.name](agent, tool.spec, held, locale)) is not None
        ]
        return [*held[:place], *described, *held[place:]]

    def _warn_once(self, host: str, tool: str, fault: str) -> None:
        key = (host, tool[:80], fault)
        if key not in self._warned and len(self._warned) < 1000:
            self._warned.add(key)
            _log.warning("tool_passed_over", host=host, tool=tool[:80], why=fault)


def _listed(name: str) -> bool:
    """Whether `tools:` decides on a tool of this name."""
    return not (name.startswith((_MCP_PREFIX, *_OWN_KEY)) or name in _UNLISTED)


def _fault(spec: ToolSpec) -> str | None:
    """Why a described tool cannot be offered."""
    if not _NAME.fullmatch(spec.name) or spec.name in _RESERVED:
        return "name"
    if spec.parameters.get("type") != "object":
        return "schema"
    try:
        compiled(spec.parameters)
    except ValueError:
        return "schema"
    return None

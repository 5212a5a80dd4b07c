"""The tools one agent holds at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from services.common.toolhost.contract import ToolSpec
from services.orchestrator.hosts.contract import ToolHost


@dataclass(frozen=True, slots=True)
class HeldTool:
    """A tool and the host that runs it."""

    spec: ToolSpec
    host: ToolHost


@dataclass(frozen=True)
class Toolbox:
    """An agent's active set, in the order it is declared to the model (TLS-004)."""

    tools: Sequence[HeldTool] = ()

    @cached_property
    def _by_name(self) -> dict[str, HeldTool]:
        return {tool.spec.name: tool for tool in self.tools}

    @property
    def specs(self) -> list[ToolSpec]:
        """What the model is told of, in order."""
        return [tool.spec for tool in self.tools]

    @property
    def names(self) -> list[str]:
        """The names, in order."""
        return [tool.spec.name for tool in self.tools]

    def find(self, name: str) -> HeldTool | None:
        """The tool of exactly this name."""
        return self._by_name.get(name)

    def nearest(self, name: str, limit: int = 3) -> list[str]:
        """Held names that `name` may have been meant to be, the most alike first (PIP-012)."""
        folded = name[:80].lower().replace("-", "_").replace(".", "_")
        return get_close_matches(folded, list(self._by_name), n=limit, cutoff=0.6)

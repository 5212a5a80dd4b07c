"""What the tools that only look at a workspace have in common: they ask nobody and change nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from services.common.toolhost.contract import (
    Arguments,
    CallContext,
    Mode,
    NoOpinion,
    Run,
    ToolKind,
    ToolResult,
    ToolSpec,
    Verdict,
)
from services.common.wording import Locale
from services.tools.tool_texts import ToolTexts


class ReadingTool(ABC):
    """A tool that looks at a workspace; implements `Tool` but for its parameters and its run."""

    name: ClassVar[str]
    kind: ClassVar[ToolKind]
    # Modes of agents that are offered it (TLS-006).
    modes: ClassVar[frozenset[Mode]] = frozenset({"assistant", "work"})
    required: ClassVar[tuple[str, ...]] = ()
    # Whether the catalogue has a sentence of the tool's for the prompt.
    guided: ClassVar[bool] = False

    def __init__(self) -> None:
        self._texts = ToolTexts(self.name)

    @abstractmethod
    def parameters(self, locale: Locale) -> dict[str, Any]:
        """The JSON schema of each parameter, described in `locale`."""

    @abstractmethod
    async def run(self, run: Run) -> ToolResult:
        """Look."""

    def spec(self, locale: Locale) -> ToolSpec:
        """Describe the tool in `locale`."""
        texts = self._texts
        schema: dict[str, Any] = {
            "type": "object",
            "properties": self.parameters(locale),
            "additionalProperties": False,
        }
        if self.required:
            schema["required"] = list(self.required)
        return ToolSpec(
            name=self.name,
            description=texts.description(locale),
            parameters=schema,
            label=texts.of(locale, "label"),
            kind=self.kind,
            effect="read",
            parallel=True,
            replay_safe=True,
            deadline_seconds=60,
            prompt_snippet=texts.of(locale, "snippet"),
            guidelines=(texts.of(locale, "guideline"),) if self.guided else (),
            card=texts.of(locale, "card"),
        )

    def offered_to(self, mode: Mode, settings: Mapping[str, Any]) -> bool:
        """To agents of its modes."""
        return mode in self.modes

    def prepare(self, arguments: Arguments) -> Arguments:
        """There is no older shape."""
        return arguments

    async def judge(self, context: CallContext, arguments: Arguments) -> Verdict:
        """Nothing: it changes nothing."""
        return NoOpinion()

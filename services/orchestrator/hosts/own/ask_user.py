"""`ask_user`: a question to the person, at a real fork (TRN-220 to 234)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.common.toolhost.contract import (
    Arguments,
    CallContext,
    Mode,
    NoOpinion,
    Run,
    ToolError,
    ToolResult,
    ToolSpec,
    Verdict,
)
from services.common.wording import Locale, load

QUESTION_CHARS = 4000
MOST_OPTIONS = 20
OPTION_CHARS = 500


class AskUser:
    """Always put before a person by the gate; the answer is the result, so it never runs."""

    name = "ask_user"

    def spec(self, locale: Locale) -> ToolSpec:
        """Describe the tool."""
        words = load("orchestrator")

        def text(key: str) -> str:
            return words.text(locale, f"tool.ask_user.{key}")

        return ToolSpec(
            name=self.name,
            description=text("description"),
            parameters={
                "type": "object",
                "properties": {
                    "question": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": QUESTION_CHARS,
                        "description": text("parameters.question"),
                    },
                    "options": {
                        "type": "array",
                        "items": {"type": "string", "minLength": 1, "maxLength": OPTION_CHARS},
                        "maxItems": MOST_OPTIONS,
                        "description": text("parameters.options"),
                    },
                    "default": {
                        "type": "string",
                        "maxLength": OPTION_CHARS,
                        "description": text("parameters.default"),
                    },
                },
                "required": ["question"],
                "additionalProperties": False,
            },
            label=text("label"),
            kind="user",
            effect="change",
            requires_approval=True,
            card=text("card"),
        )

    def offered_to(self, mode: Mode, settings: Mapping[str, Any]) -> bool:
        """Every agent has it."""
        return True

    def prepare(self, arguments: Arguments) -> Arguments:
        """There are no older shapes."""
        return arguments

    async def judge(self, context: CallContext, arguments: Arguments) -> Verdict:
        """Nothing to add: the gate asks before it judges."""
        return NoOpinion()

    async def run(self, run: Run) -> ToolResult:
        """Refuse: a question that would run has missed the gate.

        Raises:
            ToolError: Always.
        """
        text = load("orchestrator").text(run.context.locale, "tool.ask_user.not_asked")
        raise ToolError(text)

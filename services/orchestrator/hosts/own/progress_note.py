"""`progress_note`: one line for whoever watches, before a long stretch of work (TRN-231 to 234)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.common.toolhost.contract import (
    Arguments,
    CallContext,
    Mode,
    NoOpinion,
    Run,
    ToolResult,
    ToolSpec,
    Verdict,
    text_result,
)
from services.common.wording import Locale, load

NOTE_CHARS = 200


class ProgressNote:
    """The note becomes a step of the run and is kept nowhere else."""

    name = "progress_note"

    def spec(self, locale: Locale) -> ToolSpec:
        """Describe the tool."""
        words = load("orchestrator")

        def text(key: str) -> str:
            return words.text(locale, f"tool.progress_note.{key}")

        return ToolSpec(
            name=self.name,
            description=text("description"),
            parameters={
                "type": "object",
                "properties": {"text": {"type": "string", "description": text("parameters.text")}},
                "required": ["text"],
                "additionalProperties": False,
            },
            label=text("label"),
            kind="user",
            effect="read",
            replay_safe=True,
            card=text("card"),
        )

    def offered_to(self, mode: Mode, settings: Mapping[str, Any]) -> bool:
        """Every agent has it."""
        return True

    def prepare(self, arguments: Arguments) -> Arguments:
        """There are no older shapes."""
        return arguments

    async def judge(self, context: CallContext, arguments: Arguments) -> Verdict:
        """A note asks nobody."""
        return NoOpinion()

    async def run(self, run: Run) -> ToolResult:
        """Keep the first 200 characters of the note, on one line."""
        note = " ".join(str(run.arguments["text"]).split())[:NOTE_CHARS]
        return text_result(
            load("orchestrator").text(run.context.locale, "tool.progress_note.noted"), details={"note": note}
        )

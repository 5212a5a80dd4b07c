"""Who spends, and for what job."""

from __future__ import annotations

from dataclasses import dataclass

_JOB = "job:"


@dataclass(frozen=True, slots=True)
class Account:
    """The budgets that a model call is paid from, and where its cost is noted."""

    agent_id: str
    conversation_id: str | None = None
    run_id: str | None = None
    # Of the run.
    source: str = ""

    @property
    def schedule(self) -> str:
        """``<agent>/<schedule>`` when a scheduled job spends; "" otherwise."""
        return self.source.removeprefix(_JOB) if self.source.startswith(_JOB) else ""

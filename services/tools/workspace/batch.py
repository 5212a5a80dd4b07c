"""The items of one call: some may fail without losing the others (TLS-057, TLS-058)."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from services.common.toolhost.contract import ToolError
from services.common.wording import Locale
from services.tools.workspace.explaining import say
from services.tools.workspace.names import quoted

T = TypeVar("T")


class Attempts(Generic[T]):
    """What became of each item, in the order tried."""

    def __init__(self) -> None:
        self.done: list[T] = []
        self.errors: list[tuple[int, ToolError]] = []
        # Paths of those the cancellation came before.
        self.not_started: list[str] = []
        self._count = 0

    def succeeded(self, outcome: T) -> None:
        """The next item was done."""
        self._count += 1
        self.done.append(outcome)

    def failed(self, error: ToolError) -> None:
        """The next item failed."""
        self._count += 1
        self.errors.append((self._count, error))

    def left_out(self, path: str) -> None:
        """The next item was not begun: the call was cancelled."""
        self._count += 1
        self.not_started.append(path)

    def failure_lines(self, locale: Locale) -> list[str]:
        """A line for each item that was not done, by its number when there are several."""
        lines = [
            error.text if self._count == 1 else say(locale, "batch.failed", number=number, text=error.text)
            for number, error in self.errors
        ]
        if self.not_started:
            paths = ", ".join(map(quoted, self.not_started))
            lines.append(say(locale, "batch.cancelled", paths=paths))
        return lines

    def errors_text(self, locale: Locale) -> str:
        """All lines as one text."""
        return "\n".join(self.failure_lines(locale))

    def error(self, locale: Locale) -> ToolError:
        """The error of a call none of whose items was done."""
        errors = [error for _, error in self.errors]
        return ToolError(
            self.errors_text(locale),
            details=errors[0].details if len(errors) == 1 else {},
            refused=bool(errors) and all(error.refused for error in errors),
        )


def being_cancelled() -> bool:
    """Whether somebody asked for the end of the call at hand, and a write was finished first."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0

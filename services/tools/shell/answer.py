"""What the model is told of a command that has ended (tools.md 9.1, PIP-052, PIP-136, FLD-069)."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.common.toolhost.contract import Fault, ShellLimits, TextBlock, ToolError, ToolResult
from services.common.wording import Catalogue, Locale
from services.tools.shell.capture import TAIL_CHARS
from services.tools.shell.command import CommandResult
from services.tools.shell.guard.plan import Form, Outcome

# What the pipeline puts before the text of an error.
_PREFIX_ROOM = 40
_SHOWN_COMMAND = 80
# A shell reports a signal that ended its last command by this and the signal's number.
_SIGNAL_BASE = 128
_MIB = 1024**2
_GIB = 1024**3

# In the words of the C library in both languages of the crew, of Python and of Node.
_WRITE_REFUSED = re.compile(
    r"Read-only file system|Permission denied|Operation not permitted|Invalid cross-device link"
    r"|Hệ thống tập tin chỉ đọc|Không đủ quyền truy cập|Không cho phép thao tác|Liên kết chéo thiết bị"
    r"|PermissionError|\[Errno (?:1|13|18|30)\]|\b(?:EROFS|EACCES|EPERM|EXDEV)\b"
)
_MEMORY_REFUSED = re.compile(r"Cannot allocate memory|MemoryError|bad_alloc|[Oo]ut of memory|ENOMEM")
_FILE_REFUSED = re.compile(r"File size limit exceeded|File too large|\bEFBIG\b")


@dataclass(frozen=True, slots=True)
class Answer:
    """Makes the answer to one command.

    Attributes:
        command: As the model wrote it.
        timeout: Seconds it had.
        form: The sandbox it ran in.
        writable: What it could write, as the profile names it.
        network: Whether it had the network.
        ceiling: The most characters the model is given of one result.
    """

    texts: Catalogue
    locale: Locale
    command: str
    timeout: float
    limits: ShellLimits
    form: Form
    writable: tuple[str, ...]
    network: bool
    ceiling: int

    def of(self, result: CommandResult) -> ToolResult:
        """The result of a command that ran.

        Output and status are blocks of their own, so that a cut of the one never takes the other.

        Raises:
            ToolError: It failed, was stopped by a limit or the time-out, or never began.
        """
        outcome = result.outcome
        details = self._details(result)
        if outcome.failed_stage is not None:
            text = self._say("not_begun", reason=result.output.last(500).strip() or outcome.failure)
            raise ToolError(text, details=details, outcome="not_started")
        if outcome.ended in ("cancelled", "service_gone"):
            status = self._say("cancelled", command=self._shown_command(), seconds=_seconds(result.seconds))
            blocks = (*self._printed(result), TextBlock(status))
            return ToolResult(blocks, details, is_error=True, outcome="unknown")
        status_lines = self._status(result)
        if outcome.ended is None and outcome.exit_code == 0:
            blocks = (*self._printed(result), *(TextBlock(line) for line in status_lines))
            return ToolResult(blocks or (TextBlock(self._say("no_output")),), details)
        raise ToolError(
            self._failure_text(result, status_lines),
            details=details,
            outcome="done" if outcome.ended is None else "unknown",
            fault=self._fault(result),
        )

    def _fault(self, result: CommandResult) -> Fault | None:
        """Whether time or a limit ended it; None: the command failed by itself."""
        if result.outcome.ended == "timeout":
            return "timeout"
        reached = self._limit(result.outcome, result.output.last(TAIL_CHARS), failed=True)
        return "limit" if reached else None

    def _printed(self, result: CommandResult) -> tuple[TextBlock, ...]:
        output = result.output
        if not output.total_chars:
            return ()
        if not output.dropped_chars:
            return (TextBlock(output.head + output.tail),)
        mark = self._say("dropped_middle", count=output.dropped_chars)
        return (TextBlock(f"{output.head}\n{mark}\n{output.tail}"),)

    def _failure_text(self, result: CommandResult, status_lines: list[str]) -> str:
        """The end of the output, then the status; the output gives way where both do not fit."""
        status = "\n".join(status_lines)
        total = result.output.total_chars
        if not total:
            return f"{status}\n{self._say('printed_nothing')}"
        room = self.ceiling - len(status) - _PREFIX_ROOM
        if total > min(TAIL_CHARS, room):
            room -= len(self._say("dropped_before", count=total)) + 1
        shown = result.output.last(max(0, min(TAIL_CHARS, room)))
        mark = self._say("dropped_before", count=total - len(shown)) + "\n" if len(shown) < total else ""
        border = "" if not shown or shown.endswith("\n") else "\n"
        return f"{mark}{shown}{border}{status}"

    def _status(self, result: CommandResult) -> list[str]:
        outcome = result.outcome
        end = result.output.last(TAIL_CHARS)
        failed = outcome.ended is not None or outcome.exit_code != 0
        lines = []
        if outcome.ended == "timeout":
            lines.append(self._say("timed_out", seconds=_seconds(self.timeout)))
        elif failed and outcome.ended is None:
            lines.append(self._exit_line(outcome))
        if limit := self._limit(outcome, end, failed=failed):
            lines.append(limit)
        if outcome.survivors:
            lines.append(self._say("survivors", count=outcome.survivors))
        if self.form != "none" and (failed or _WRITE_REFUSED.search(end)):
            lines.append(self._sandbox_line())
        return lines

    def _exit_line(self, outcome: Outcome) -> str:
        if outcome.signal is not None:
            return self._say("signal", name=_signal_name(outcome.signal))
        code = outcome.exit_code or 0
        if code > _SIGNAL_BASE and (name := _signal_name(code - _SIGNAL_BASE)):
            return self._say("exit_by_signal", code=code, name=name)
        return self._say("exit", code=code)

    def _limit(self, outcome: Outcome, end: str, *, failed: bool) -> str | None:
        """The limit that was reached, counted by the guard or told by what it does to a program."""
        limits = self.limits
        number = outcome.signal or (outcome.exit_code or 0) - _SIGNAL_BASE
        if outcome.ended == "processes":
            return self._say("limit_processes", limit=limits.processes)
        if outcome.ended == "cpu" or number == signal.SIGXCPU:
            return self._say("limit_cpu", limit=limits.cpu_seconds)
        if failed and (number == signal.SIGXFSZ or _FILE_REFUSED.search(end)):
            return self._say("limit_file", limit=_size(limits.file_bytes))
        if failed and _MEMORY_REFUSED.search(end):
            return self._say("limit_memory", limit=_size(limits.memory_bytes))
        return None

    def _sandbox_line(self) -> str:
        places = ", ".join(f"`{path}`" for path in self.writable)
        where = self._say("writes_there", places=places) if places else self._say("writes_nowhere")
        network = self._say("with_network" if self.network else "without_network")
        return self._say("sandbox", where=where, network=network)

    def _details(self, result: CommandResult) -> Mapping[str, Any]:
        outcome, output = result.outcome, result.output
        return {
            "exit_code": outcome.exit_code,
            "signal": outcome.signal,
            "ended": outcome.ended,
            "sandbox": self.form,
            "seconds": round(result.seconds, 3),
            "cpu_seconds": round(outcome.cpu_seconds, 2),
            # FLD-069: a later cut adds what is missing here to what it takes itself.
            "total_chars": output.total_chars,
            "dropped_chars": output.dropped_chars,
        }

    def _shown_command(self) -> str:
        line = " ".join(self.command.split())
        return line if len(line) <= _SHOWN_COMMAND else f"{line[: _SHOWN_COMMAND - 1]}…"

    def _say(self, key: str, **values: object) -> str:
        return self.texts.text(self.locale, f"shell.answer.{key}", **values)


def _signal_name(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return ""


def _seconds(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _size(count: int) -> str:
    unit, name = (_GIB, "GB") if count % _GIB == 0 else (_MIB, "MB")
    return f"{count / unit:.1f}".removesuffix(".0") + f" {name}"

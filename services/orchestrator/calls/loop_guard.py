"""Noticing that a turn goes in circles (TRN-162 to 171, FLD-007).

The guard sees each model call's tool calls before they run and their results after. It knows four
signs: the same calls with the same results, the same calls with ever new results, a cycle of two to
four model calls, and tool errors without end.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from services.common.toolhost import exact_json
from services.common.wording import Locale, load
from services.orchestrator.calls.contract import CallOutcome
from services.orchestrator.store.records import StoredCall

# Left out of the signature: a note or a question is no progress of its own (TRN-167).
SILENT = frozenset({"progress_note", "ask_user"})

NOTE_AT_REPEATS = 3
HALT_AT_REPEATS = 6
# Identical calls whose results differ are progress for so long.
PROGRESS_REPEATS = 20
CYCLE_LENGTHS = (2, 3, 4)
NOTE_AT_CYCLES = 3
HALT_AT_CYCLES = 5
NOTE_AT_ERRORS = 8
HALT_AT_ERRORS = 15

_UNNAMED = re.compile(r"[^A-Za-z0-9_.-]")
_NAME_CHARS = 64
_KEPT_STEPS = max(CYCLE_LENGTHS) * HALT_AT_CYCLES


@dataclass(frozen=True, slots=True)
class Note:
    """The turn goes on after the model was told what it does (TRN-164)."""

    sign: Literal["repeat", "cycle", "errors"]
    # Tool names only, never arguments or results.
    tools: Sequence[str]
    count: int

    def text(self, locale: Locale) -> str:
        """The note as it is stored in the user role."""
        names = ", ".join(f"`{name}`" for name in self.tools)
        return load("orchestrator").text(locale, f"calls.guard.{self.sign}", tools=names, count=self.count)


@dataclass(frozen=True, slots=True)
class Halt:
    """The turn ends, or goes to the escalation route."""

    reason: Literal["loop", "errors"]
    tools: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Step:
    signature: bytes
    results: bytes


class LoopGuard:
    """The guard of one turn; a resumed turn starts with a new one (TRN-169)."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._same = 0
        self._unchanged = 0
        self._errors = 0

    def restart(self) -> None:
        """Forget the calls: the model spoke without tools, a person did, or the turn escalated."""
        self._steps.clear()
        self._same = self._unchanged = self._errors = 0

    def before(self, calls: Sequence[StoredCall]) -> Halt | None:
        """Whether the calls of a model call may run at all.

        A halt means that none of them runs; each is closed with a refusal (TRN-165).
        """
        signature = _signature(calls)
        if signature is None or not self._steps or self._steps[-1].signature != signature:
            return None
        if self._unchanged >= HALT_AT_REPEATS - 1 or self._same >= PROGRESS_REPEATS:
            return Halt("loop", _names(calls))
        return None

    def after(self, outcomes: Sequence[CallOutcome]) -> Note | Halt | None:
        """What follows from the results of the calls that just ran, all of one model call."""
        calls = [outcome.call for outcome in outcomes]
        errors = self._count_errors(outcomes)
        signature = _signature(calls)
        if signature is None:
            self._steps.clear()
            self._same = self._unchanged = 0
            return errors
        step = _Step(signature, _digest_results(outcomes))
        last = self._steps[-1] if self._steps else None
        self._same = self._same + 1 if last and last.signature == signature else 1
        self._unchanged = self._unchanged + 1 if last == step else 1
        self._steps = [*self._steps, step][-_KEPT_STEPS:]
        if isinstance(errors, Halt):
            return errors
        if self._unchanged == NOTE_AT_REPEATS:
            return Note("repeat", _names(calls), self._unchanged)
        return self._cycle(calls) or errors

    def _count_errors(self, outcomes: Sequence[CallOutcome]) -> Note | Halt | None:
        noted = False
        for outcome in outcomes:
            self._errors = 0 if outcome.ok else self._errors + 1
            noted = noted or self._errors == NOTE_AT_ERRORS
            if self._errors >= HALT_AT_ERRORS:
                return Halt("errors", _names([each.call for each in outcomes]))
        if noted and self._errors:
            return Note("errors", _names([each.call for each in outcomes]), self._errors)
        return None

    def _cycle(self, calls: Sequence[StoredCall]) -> Note | Halt | None:
        if self._unchanged > 1:
            return None
        for length in CYCLE_LENGTHS:
            rounds = _rounds(self._steps, length)
            if rounds >= HALT_AT_CYCLES:
                return Halt("loop", _names(calls))
            if rounds == NOTE_AT_CYCLES and _rounds(self._steps[:-1], length) < NOTE_AT_CYCLES:
                return Note("cycle", _names(calls), rounds)
        return None


def _signature(calls: Sequence[StoredCall]) -> bytes | None:
    """Names and arguments without ids or order; None when nothing in it counts."""
    parts = sorted(
        f"{call.name}\0{call.broken if call.broken is not None else _canonical(call.arguments)}"
        for call in calls
        if call.name not in SILENT
    )
    return hashlib.sha256("\1".join(parts).encode("utf-8", "replace")).digest() if parts else None


def _canonical(arguments: str) -> str:
    try:
        value = exact_json.loads_object(arguments)
    except ValueError:
        return arguments
    return exact_json.dumps(dict(sorted(value.items())))


def _digest_results(outcomes: Sequence[CallOutcome]) -> bytes:
    parts = sorted(
        f"{outcome.call.name}\0{outcome.ok}\0{outcome.text}"
        for outcome in outcomes
        if outcome.call.name not in SILENT
    )
    return hashlib.sha256("\1".join(parts).encode("utf-8", "replace")).digest()


def _names(calls: Sequence[StoredCall]) -> list[str]:
    """Tool names for a note in the user role: a made-up name must not bring words of its own there."""
    names = (_UNNAMED.sub("?", call.name)[:_NAME_CHARS] for call in calls if call.name not in SILENT)
    return list(dict.fromkeys(names))


def _rounds(steps: Sequence[_Step], length: int) -> int:
    """How many whole rounds of `length` different steps stand unbroken at the end."""
    last = steps[-length:]
    if len(last) < length or len(set(last)) == 1:
        return 0
    rounds = 1
    while steps[-(rounds + 1) * length : -rounds * length] == last:
        rounds += 1
    return rounds

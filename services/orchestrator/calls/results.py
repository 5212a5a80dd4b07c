"""From what a host gave back to what the model, the product and the run step get."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from services.common.ceiling import Cut, limit
from services.common.ceiling.limit import STRUCTURE_CHARS
from services.common.toolhost import exact_json
from services.common.toolhost.contract import ImageBlock, TextBlock, ToolResult, ToolSpec, text_result
from services.common.toolhost.nested import NestedCall, ScriptRecord
from services.common.wording import Locale, load
from services.orchestrator.calls.contract import CallFault, CallOutcome, StepKind
from services.orchestrator.calls.masking import SecretMask
from services.orchestrator.calls.steps import step_arguments, step_output
from services.orchestrator.store.records import GateVerdict, StoredCall

# What no database, provider or JSON text takes (FLD-014).
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
# Errors of commands stand at their end (PIP-081).
_CUT_IN_THE_MIDDLE = frozenset({"shell_run"})
# The details by which a reading tool says which lines its text is.
_LINES = ("first_line", "last_line", "total_lines")
_REFUSALS: frozenset[GateVerdict] = frozenset({"refused", "denied", "expired"})
# Of the details kept with a message.
_MOST_DETAILS_CHARS = 1_000_000
# Of one call's own money; what is above was not meant as a price or a count.
_MOST_USD = 100_000.0
_MOST_UNKNOWN_CALLS = 100


@dataclass(frozen=True, slots=True)
class Ceiling:
    """How many characters of one result enter the context."""

    chars: int
    # JSON is held lower unless the agent's profile names a ceiling itself (TLS-121).
    structure_chars: int | None = STRUCTURE_CHARS


class ResultMaker:
    """Makes outcomes of results.

    Args:
        mask: Of secret values this process knows.
    """

    def __init__(self, mask: SecretMask) -> None:
        self._mask = mask

    def outcome(
        self,
        call: StoredCall,
        result: ToolResult,
        *,
        locale: Locale,
        ceiling: Ceiling,
        verdict: GateVerdict,
        reason: str = "",
        arguments_json: str = "{}",
        ms: int | None = None,
        spec: ToolSpec | None = None,
        note: str = "",
        cancelled: bool = False,
        step_kind: StepKind = "tool",
        own_words: bool = False,
        fault: CallFault | None = None,
        about: Sequence[str] = (),
        host: str = "",
    ) -> CallOutcome:
        """The outcome of `call`.

        Args:
            call: What was asked.
            result: What the host gave, or what stands for it.
            locale: Of the words around it.
            ceiling: For the text.
            verdict: Why it ran, or did not.
            reason: Of the verdict.
            arguments_json: As it ran, or would have.
            ms: Of the effect; None when nothing ran.
            spec: Of the tool, when there is one.
            note: A line of the system after the output; never cut away.
            cancelled: The turn was stopped while it ran.
            step_kind: What run step it becomes.
            own_words: The text is the system's own and is no tool's fault: it gets no prefix.
            fault: How it failed, where the result does not say.
            about: What the fault is about.
            host: Of the service that ran it.
        """
        text, replaced = _storable(self._mask.text(self._written(result, locale)))
        words = load("orchestrator")
        notes = [note] if note else []
        if replaced:
            notes.append(words.text(locale, "calls.results.replaced", count=replaced))
        # A script that failed is known by the first line of its own answer (SCR-355).
        plain = not result.is_error or own_words or result.script is not None
        prefix = "" if plain else words.text(locale, "calls.results.error_prefix")
        ending = "".join(f"\n{each}" for each in notes)
        room = max(1, ceiling.chars - len(prefix) - len(ending))
        sized = spec is not None and spec.sizes_itself
        cut: Cut = "head_and_tail" if call.name in _CUT_IN_THE_MIDDLE else "head"
        limited = limit(
            text,
            room,
            locale,
            cut=cut,
            status_line=_has_status_line(result),
            structure_ceiling=None if sized else ceiling.structure_chars,
            is_error=result.is_error,
            file_lines=_file_lines(result.details),
        )
        ok = not result.is_error
        cost_usd, unknown_cost_calls = _paid(result)
        final = f"{prefix}{limited.text}{ending}"[: ceiling.chars]
        return CallOutcome(
            call=call,
            text=final,
            ok=ok,
            verdict=verdict,
            reason=reason,
            outcome=result.outcome,
            ms=ms,
            arguments_json=arguments_json,
            cost_usd=cost_usd,
            unknown_cost_calls=unknown_cost_calls,
            details_json=self._details(result.details),
            shortened=limited.how,
            original_chars=limited.original_chars if limited.how else None,
            images=[block for block in result.content if isinstance(block, ImageBlock)],
            new_tools=result.new_tools,
            terminate=result.terminate,
            absent=result.absent,
            cancelled=cancelled,
            step_kind=step_kind,
            # Without the prefix: its lengths are the message's own.
            step_output=step_output(f"{limited.text}{ending}", ok=ok),
            step_arguments=step_arguments(self._mask.text(arguments_json), locale),
            fault=None if ok or verdict in _REFUSALS else fault or _fault_of(result, cancelled=cancelled),
            about=about,
            effect=spec.effect if spec is not None else None,
            host=host,
            bytes_out=len(result.text.encode(errors="replace")),
            exit_code=_exit_code(result.details),
            script=self._script(result.script),
        )

    def progress(self, text: str, details: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Progress as it may be shown."""
        return _storable(self._mask.text(text))[0], self._mask.details(details)

    def nested(self, call: NestedCall) -> NestedCall:
        """A call of a call as it may be shown and kept."""
        return replace(
            call,
            name=_storable(self._mask.text(call.name))[0],
            arguments=_clean(self._mask.details(call.arguments)),
            output=_storable(self._mask.text(call.output))[0],
        )

    def _script(self, script: ScriptRecord | None) -> ScriptRecord | None:
        return script and replace(script, calls=tuple(self.nested(call) for call in script.calls))

    def _written(self, result: ToolResult, locale: Locale) -> str:
        """The text of a result, which is never empty (TLS-061)."""
        if result.text.strip():
            return result.text
        words = load("orchestrator")
        if result.is_error:
            return words.text(locale, "calls.results.silent_error")
        if result.absent:
            return words.text(locale, "calls.results.absent")
        images = [block.path for block in result.content if isinstance(block, ImageBlock)]
        if images:
            return words.text(locale, "calls.results.pictures", paths=", ".join(images))
        return words.text(locale, "calls.results.empty")

    def _details(self, details: Mapping[str, Any]) -> str:
        text = exact_json.dumps(_clean(self._mask.details(details))) if details else "{}"
        if len(text) > _MOST_DETAILS_CHARS:
            return exact_json.dumps({"left_out_chars": len(text)})
        return text


def failed(text: str, **fields: Any) -> ToolResult:
    """An error result of a call that did not run."""
    return replace(text_result(text, is_error=True, outcome="not_started"), **fields)


def _fault_of(result: ToolResult, *, cancelled: bool) -> CallFault:
    if cancelled:
        return "cancelled"
    if result.refused:
        return "refused"
    return result.fault or "tool"


def _has_status_line(result: ToolResult) -> bool:
    """Whether the last line says how a command ended; one that went well only prints."""
    return result.is_error or sum(isinstance(block, TextBlock) for block in result.content) > 1


def _exit_code(details: Mapping[str, Any]) -> int | None:
    code = details.get("exit_code")
    return code if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 2**31 else None


def _file_lines(details: Mapping[str, Any]) -> int | None:
    """How many lines the file has that a result is the whole of; None when it is no such result."""
    first, last, total = (details.get(name) for name in _LINES)
    return total if isinstance(total, int) and first == 1 and last == total else None


def _storable(text: str) -> tuple[str, int]:
    return _UNSTORABLE.subn("\ufffd", text)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _storable(value)[0]
    if isinstance(value, Mapping):
        return {_storable(str(key))[0]: _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value


def _paid(result: ToolResult) -> tuple[float | None, int]:
    """What a call says it cost; a host's word adds to what was spent and never takes from it."""
    unknown = min(max(0, result.unknown_cost_calls), _MOST_UNKNOWN_CALLS)
    if result.cost_usd is None or 0 <= result.cost_usd <= _MOST_USD:
        return result.cost_usd, unknown
    return None, max(1, unknown)

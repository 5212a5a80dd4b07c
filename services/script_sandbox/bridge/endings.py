"""How a script's end is told to the orchestrator, in the script's locale (script.md, 18 and 19)."""

from __future__ import annotations

from crew.v1 import script_sandbox_pb2 as pb

from services.common.wording import Locale, load
from services.script_sandbox.engine.outcomes import Died, Raised, Ran, Stopped
from services.script_sandbox.engine.printed import Printed
from services.script_sandbox.limits import Limits


def finished(outcome: Ran, printed: Printed, locale: Locale, cpu_seconds: float) -> pb.FromSandbox:
    """The program ran to its end."""
    writes = [pb.StoreWrite(key=key, json=text) for key, text in outcome.writes]
    return pb.FromSandbox(
        finished=pb.ScriptFinished(
            printed=printed.text(locale),
            printed_chars=printed.chars,
            steps=min(outcome.steps, 2**62),
            cpu_seconds=cpu_seconds,
            writes=writes,
        )
    )


def failed(
    outcome: Raised | Stopped | Died, printed: Printed, locale: Locale, limits: Limits
) -> pb.FromSandbox:
    """It did not; what it printed is kept but for a death (SCR-353)."""
    texts = load("script_sandbox")
    match outcome:
        case Raised(kind=kind, message=message, line=line):
            sentence = texts.text(
                locale, "error_at", line=line, error=f"{kind}: {message}" if message else kind
            )
            return _failed(pb.SCRIPT_FAILURE_KIND_ERROR, kind, line, sentence, printed, locale)
        case Stopped(cause=cause, line=line):
            reason = texts.text(locale, f"stop.{cause}", **_numbers(limits))
            sentence = texts.text(locale, "stopped_at", line=line, reason=reason)
            return _failed(pb.SCRIPT_FAILURE_KIND_LIMIT, cause, line, sentence, printed, locale)
        case Died(cause=cause):
            sentence = texts.text(locale, f"killed.{cause}", **_numbers(limits))
            return _failed(pb.SCRIPT_FAILURE_KIND_KILLED, cause, 0, sentence, None, locale)


def refused(text: str, line: int, printed: Printed, locale: Locale) -> pb.FromSandbox:
    """The orchestrator refused what the program asked for."""
    sentence = load("script_sandbox").text(locale, "stopped_at", line=line, reason=text)
    return _failed(pb.SCRIPT_FAILURE_KIND_REFUSED, "refused", line, sentence, printed, locale)


def _failed(
    kind: pb.ScriptFailureKind,
    cause: str,
    line: int,
    sentence: str,
    printed: Printed | None,
    locale: Locale,
) -> pb.FromSandbox:
    return pb.FromSandbox(
        failed=pb.ScriptFailed(
            kind=kind,
            cause=cause,
            line=line,
            message=sentence,
            printed=printed.text(locale) if printed is not None else "",
            printed_chars=printed.chars if printed is not None else 0,
        )
    )


def _numbers(limits: Limits) -> dict[str, object]:
    return {
        "steps": limits.steps,
        "depth": limits.depth,
        "value_size": limits.value_size,
        "calls": limits.calls,
        "questions": limits.questions,
        "argument_chars": limits.argument_chars,
        "megabytes": limits.memory_bytes // 1024 // 1024,
        "cpu_seconds": f"{limits.cpu_seconds:g}",
        "alone_seconds": f"{limits.alone_seconds:g}",
        "total_seconds": f"{limits.total_seconds:g}",
    }

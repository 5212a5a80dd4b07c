"""Results for calls that will not run, or whose answer is a person's (TRN-103, 143 to 149, 212, 225)."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from services.common.toolhost.contract import Outcome, ToolResult, text_result
from services.common.wording import Locale, load
from services.orchestrator.calls.contract import CallFault, CallOutcome, StepKind
from services.orchestrator.calls.gate import ASK_USER
from services.orchestrator.calls.masking import SecretMask
from services.orchestrator.calls.results import Ceiling, ResultMaker
from services.orchestrator.store.records import Approval, GateVerdict, StoredCall

Why = Literal[
    # The last allowed model call asked for tools (TRN-103).
    "out_of_steps",
    # The loop guard ended the turn (TRN-165).
    "loop",
    # The loop guard moved the turn to the escalation route (TRN-175).
    "handed_over",
    # An earlier turn left the call open (TRN-144).
    "interrupted",
    # The server restarted while the call ran (TRN-149).
    "restarted",
    # The turn was stopped before the call began (PIP-032).
    "not_started",
    # A fork was cut before the call had its result (TRN-029).
    "forked",
    # The conversation's money is spent.
    "budget",
    # The turn's wall clock ran out (FLD-008).
    "time",
    # Too many tool errors in a row (FLD-007).
    "errors",
    # There is no room to store anything (FLD-051).
    "full",
    # The scripts of the turn made all the calls they may (TRN-111).
    "nested_calls",
]

_MAY_HAVE_RUN: frozenset[Why] = frozenset({"interrupted", "restarted"})
# These texts are the product's own; no secret of this process can be in them.
_RESULTS = ResultMaker(SecretMask())
_WHOLE = Ceiling(chars=100_000)


def close(call: StoredCall, why: Why, locale: Locale, **values: object) -> CallOutcome:
    """The result of a call that is closed without running it; `values` are of its sentence."""
    outcome: Outcome = "unknown" if why in _MAY_HAVE_RUN else "not_started"
    text = load("orchestrator").text(locale, f"calls.closed.{why}", **values)
    fault: CallFault = "interrupted" if why in _MAY_HAVE_RUN else "closed"
    result = text_result(text, is_error=True, outcome=outcome)
    return _outcome(call, result, locale, "failed", why, fault)


def close_with_decision(call: StoredCall, decision: Approval | None, locale: Locale) -> CallOutcome:
    """The result of a call that an earlier turn left open, by what is known of it (TRN-143, 144).

    Args:
        call: The open call.
        decision: Its request, decided; None when there was none.
        locale: Of the result.
    """
    if decision is None or decision.status in {"pending", "approved"}:
        return close(call, "interrupted", locale)
    return answered_by_person(call, decision, locale)


def answered_by_person(call: StoredCall, decision: Approval, locale: Locale) -> CallOutcome:
    """The result that a decision itself is: a refusal, an answer, or a question's default.

    Args:
        call: What was asked for.
        decision: Denied, expired or answered.
        locale: Of the result.

    Raises:
        ValueError: The decision lets the call run, or is none yet.
    """
    words = load("orchestrator")
    verdict: GateVerdict
    match decision.status:
        case "answered":
            result, verdict = text_result(decision.answer or ""), "approved"
        case "expired" if decision.kind == "question" and decision.default_answer is not None:
            text = words.text(locale, "calls.question.default", answer=decision.default_answer)
            result, verdict = text_result(text), "expired"
        case "expired" if decision.kind == "question":
            text = words.text(locale, "calls.question.unanswered")
            result, verdict = text_result(text, is_error=True, outcome="not_started"), "expired"
        case "expired":
            text = words.text(locale, "calls.decision.expired")
            result, verdict = text_result(text, is_error=True, outcome="not_started"), "expired"
        case "denied":
            text = words.text(locale, "calls.decision.denied")
            result, verdict = text_result(text, is_error=True, outcome="not_started"), "denied"
        case _:
            raise ValueError(f"a {decision.status} request is no answer")
    asked = replace(call, arguments=decision.arguments)
    return replace(_outcome(asked, result, locale, verdict, decision.decided_by or ""), call=call)


def _outcome(
    call: StoredCall,
    result: ToolResult,
    locale: Locale,
    verdict: GateVerdict,
    reason: str,
    fault: CallFault | None = None,
) -> CallOutcome:
    kind: StepKind = "question" if call.name == ASK_USER else "tool"
    return _RESULTS.outcome(
        call,
        result,
        locale=locale,
        ceiling=_WHOLE,
        verdict=verdict,
        reason=reason,
        arguments_json=call.arguments,
        step_kind=kind,
        own_words=True,
        fault=fault,
    )

"""What the gate decides on, asked of those who know: the host, the grants, a second model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from services.common.toolhost.contract import CallContext, NoOpinion, Verdict
from services.orchestrator.calls import gate, grants
from services.orchestrator.calls.arguments import Fitted
from services.orchestrator.calls.contract import Scope
from services.orchestrator.calls.review import Judgement, ReviewRequest, rule_for
from services.orchestrator.calls.review import words as review_words
from services.orchestrator.calls.toolbox import HeldTool
from services.orchestrator.hosts.contract import CannotJudge
from services.orchestrator.models.contract import Route
from services.orchestrator.store.records import Conversation, Review, StoredCall

_log = structlog.get_logger(__name__)


async def opinion_on(
    held: HeldTool, context: CallContext, arguments: Mapping[str, Any]
) -> Verdict | gate.Unjudged:
    """What the host thinks of the call; a host that does not say is no reason to let it run (TLS-021)."""
    if not (held.spec.judges or held.spec.two_phase):
        return NoOpinion()
    try:
        return await held.host.judge(held.spec.name, context, arguments)
    except CannotJudge:
        return gate.Unjudged()
    except Exception:
        _log.exception("judge_failed", host=held.host.name, tool=held.spec.name, call_id=context.call_id)
        return gate.Unjudged()


async def decision_on(
    scope: Scope, held: HeldTool, fitted: Fitted, context: CallContext, conversation: Conversation
) -> gate.Decision:
    """The gate's decision, before any review."""
    return gate.decide(
        held.spec,
        await opinion_on(held, context, fitted.arguments),
        autonomous=conversation.autonomous,
        grant=grants.covering(held.spec.name, fitted.arguments, conversation.auto_approve),
        may_have_happened=held.spec.effect != "read"
        and any(
            earlier.tool == held.spec.name and earlier.arguments_sha256 == fitted.sha256
            for earlier in scope.unknown_outcomes
        ),
    )


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The decision after a review, with what a person is shown of it."""

    decision: gate.Decision
    review: Review
    # The route, when it gave a verdict.
    by: str


async def reviewed(
    scope: Scope, call: StoredCall, held: HeldTool, fitted: Fitted, allowed: gate.Allow
) -> Reviewed | None:
    """Have a call judged that would run unattended; None when no rule wants that (PIP-100)."""
    if allowed.verdict not in gate.UNATTENDED:
        return None
    rule = rule_for(scope.agent.review, held.spec.name)
    if rule is None:
        return None
    denials = 0
    if scope.reviews is None:
        judgement = Judgement("none", Route.parse(rule.route), silence="missing")
    else:
        request = ReviewRequest(rule, held.spec.name, fitted.json, fitted.sha256)
        judgement = await scope.reviews.judge(call, request)
        denials = scope.reviews.denials
    decision = gate.reviewed(allowed, judgement.verdict, on_deny=rule.on_deny, denials=denials)
    often = denials if judgement.verdict == "deny" and rule.on_deny == "deny" else 0
    if isinstance(decision, gate.Deny):
        decision = replace(decision, text=review_words.refusal(judgement, scope.locale))
    elif isinstance(decision, gate.AskPerson):
        decision = replace(decision, reason=review_words.reason(judgement, scope.locale, denials=often))
    by = rule.route if judgement.verdict != "none" else ""
    return Reviewed(decision, Review(judgement.verdict, judgement.reason, rule.route), by)

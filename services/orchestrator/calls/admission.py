"""Taking one call to the point where it may run, is put before a person, or has its answer.

Resolve, read and fit the arguments, before-hooks, gate, in this order (PIP-010). Whatever ends here
ran nothing (PIP-011).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from services.common.times import utc_now
from services.common.toolhost.contract import CallContext, ToolSpec, WorkspaceGrant
from services.common.toolhost.phases import TOKEN_SECONDS
from services.common.wording import load
from services.orchestrator.agents.profile import Agent
from services.orchestrator.calls import gate
from services.orchestrator.calls.arguments import Faulty, Fitted, digest, fit
from services.orchestrator.calls.cards import draft
from services.orchestrator.calls.closing import answered_by_person, close
from services.orchestrator.calls.contract import ApprovalDraft, CallFault, CallOutcome, Scope
from services.orchestrator.calls.hooks import Hooks
from services.orchestrator.calls.judging import decision_on, opinion_on, reviewed
from services.orchestrator.calls.results import Ceiling, ResultMaker, failed
from services.orchestrator.calls.review import ReviewRequest, rule_for
from services.orchestrator.calls.toolbox import HeldTool
from services.orchestrator.hosts.contract import CannotPrepare
from services.orchestrator.store.records import Approval, Conversation, GateVerdict, StoredCall

# What a script receives of one answer, whatever its agent's ceiling (SCR-055, SCR-113).
SCRIPT_ANSWER_CHARS = 200_000
# No host's result is longer.
_WHOLE_CHARS = 16 * 1024 * 1024

GrantFor = Callable[[Agent], WorkspaceGrant]


@dataclass(frozen=True, slots=True)
class Admitted:
    """The call may run, with these arguments."""

    call: StoredCall
    held: HeldTool
    fitted: Fitted
    context: CallContext
    verdict: GateVerdict
    rule: str
    token: str
    target_state: str
    # The route of the second model that let it pass; "" when none was asked.
    reviewed_by: str = ""


@dataclass(frozen=True, slots=True)
class Asking:
    """A person must decide."""

    call: StoredCall
    draft: ApprovalDraft


Admission = Admitted | Asking | CallOutcome


class Admissions:
    """The checks between what a model wrote and an effect."""

    def __init__(self, results: ResultMaker, hooks: Hooks, grant_for: GrantFor) -> None:
        self._results = results
        self._hooks = hooks
        self._grant_for = grant_for

    async def admit(self, scope: Scope, call: StoredCall) -> Admission:
        """Take `call` as far as it goes without its effect."""
        decision = scope.decisions.get(call.id)
        if decision is not None and decision.status != "approved":
            return answered_by_person(call, decision, scope.locale)
        held = scope.toolbox.find(call.name)
        if call.broken is not None or call.cut_off:
            return self._unreadable(scope, call, held)
        if held is None:
            return self._unknown(scope, call)
        if scope.recovered and decision is None and not _repeatable(held.spec):
            return close(call, "restarted", scope.locale)
        fitted = await fit(held.spec, call.arguments, scope.locale, prepare=_prepare(held))
        if isinstance(fitted, Faulty):
            return self._refusal(
                scope,
                call,
                fitted.text,
                arguments_json=fitted.json,
                fault="arguments",
                about=fitted.parameters,
                spec=held.spec,
            )
        blocked = await self._hooks.ask_before(
            scope, call, fitted, lambda text: fit(held.spec, text, scope.locale)
        )
        if isinstance(blocked, Fitted):
            fitted = blocked
        else:
            return self._refusal(
                scope,
                call,
                blocked.reason,
                arguments_json=fitted.json,
                terminate=blocked.terminate,
                fault="blocked",
                spec=held.spec,
            )
        conversation = await scope.reread() if scope.reread is not None else scope.conversation
        context = self._context(scope, call, conversation)
        if decision is not None:
            approved = self._approved(scope, call, held, fitted, context, decision)
            if isinstance(approved, Admitted) and held.spec.two_phase and _stale(decision):
                return await self._previewed_again(scope, call, held, fitted, context)
            return approved
        return await self._through_gate(scope, call, held, fitted, context, conversation)

    async def judge_again(self, scope: Scope, admitted: Admitted) -> Admission:
        """Take an admitted call through the gate once more, as the conversation is now."""
        conversation = await scope.reread() if scope.reread is not None else scope.conversation
        context = self._context(scope, admitted.call, conversation)
        return await self._through_gate(
            scope, admitted.call, admitted.held, admitted.fitted, context, conversation
        )

    async def _through_gate(
        self,
        scope: Scope,
        call: StoredCall,
        held: HeldTool,
        fitted: Fitted,
        context: CallContext,
        conversation: Conversation,
    ) -> Admission:
        decision = await decision_on(scope, held, fitted, context, conversation)
        second = None
        if isinstance(decision, gate.Allow):
            second = await reviewed(scope, call, held, fitted, decision)
            if second is not None:
                decision = second.decision
        match decision:
            case gate.Allow():
                return Admitted(
                    call,
                    held,
                    fitted,
                    context,
                    decision.verdict,
                    decision.rule,
                    decision.token,
                    # Bound to what a person saw (FLD-022). Nobody saw it: two edits at once both land.
                    target_state="",
                    reviewed_by=second.by if second else "",
                )
            case gate.Deny():
                outcome = self._refusal(
                    scope,
                    call,
                    decision.text,
                    arguments_json=fitted.json,
                    verdict="refused",
                    reason=decision.rule,
                    spec=held.spec,
                )
                return replace(outcome, reviewed_by=second.by if second else "")
            case gate.AskPerson():
                return Asking(call, draft(scope, held, fitted, decision, second.review if second else None))

    async def foresee(self, scope: Scope, name: str, arguments: str) -> ReviewRequest | None:
        """The review that a call of these arguments, as the model wrote them, will need.

        None when it will need none, as far as can be told before it is a call: the gate decides
        when its turn comes, and asks for another review where this one does not fit.
        """
        held = scope.toolbox.find(name)
        if held is None or (rule := rule_for(scope.agent.review, name)) is None:
            return None
        fitted = await fit(held.spec, arguments, scope.locale, prepare=_prepare(held))
        if isinstance(fitted, Faulty):
            return None
        context = self._context(scope, StoredCall(str(uuid4()), name, arguments), scope.conversation)
        decision = await decision_on(scope, held, fitted, context, scope.conversation)
        if not isinstance(decision, gate.Allow) or decision.verdict not in gate.UNATTENDED:
            return None
        return ReviewRequest(rule, name, fitted.json, fitted.sha256)

    def _approved(
        self,
        scope: Scope,
        call: StoredCall,
        held: HeldTool,
        fitted: Fitted,
        context: CallContext,
        decision: Approval,
    ) -> Admission:
        """What a person approved is what runs, or nothing does (PIP-092, TRN-132)."""
        shown = digest(decision.arguments)
        same = hmac.compare_digest(fitted.sha256, decision.arguments_sha256) and hmac.compare_digest(
            shown, decision.arguments_sha256
        )
        if not same or decision.tool != call.name or decision.kind != "tool":
            text = load("orchestrator").text(scope.locale, "calls.decision.differs")
            return self._refusal(
                scope, call, text, arguments_json=fitted.json, verdict="refused", spec=held.spec
            )
        return Admitted(
            call,
            held,
            fitted,
            context,
            "approved",
            decision.decided_by or "",
            decision.token,
            decision.target_state,
        )

    async def _previewed_again(
        self, scope: Scope, call: StoredCall, held: HeldTool, fitted: Fitted, context: CallContext
    ) -> Admission:
        """Back to the first phase: what was approved is no longer proven, so a person sees it anew."""
        opinion = await opinion_on(held, context, fitted.arguments)
        decision = gate.decide(held.spec, opinion, autonomous=False, grant=None)
        verdict: GateVerdict = "failed"
        text = load("orchestrator").text(scope.locale, "calls.two_phase.no_preview")
        match decision:
            case gate.Deny():
                text, verdict = decision.text, "refused"
            case gate.AskPerson() if decision.token:
                return Asking(call, draft(scope, held, fitted, decision))
            case _:
                pass
        return self._refusal(scope, call, text, arguments_json=fitted.json, verdict=verdict, spec=held.spec)

    def _unreadable(self, scope: Scope, call: StoredCall, held: HeldTool | None) -> CallOutcome:
        text = call.broken or load("orchestrator").text(scope.locale, "calls.cut_off")
        fault: CallFault = "arguments" if call.broken else "closed"
        return self._refusal(
            scope,
            call,
            text,
            fault=fault,
            about=("",) if call.broken else (),
            spec=held.spec if held is not None else None,
        )

    def _unknown(self, scope: Scope, call: StoredCall) -> CallOutcome:
        words = load("orchestrator")
        near = scope.toolbox.nearest(call.name)
        name = call.name[:80]
        if near:
            names = ", ".join(f"`{each}`" for each in near)
            text = words.text(scope.locale, "calls.unknown_tool.near", tool=name, names=names)
        else:
            text = words.text(scope.locale, "calls.unknown_tool.none", tool=name)
        return self._refusal(scope, call, text, fault="unknown_tool", about=near[:1])

    def _refusal(
        self,
        scope: Scope,
        call: StoredCall,
        text: str,
        *,
        arguments_json: str = "{}",
        verdict: GateVerdict = "failed",
        reason: str = "",
        terminate: bool = False,
        fault: CallFault | None = None,
        about: Sequence[str] = (),
        spec: ToolSpec | None = None,
    ) -> CallOutcome:
        return self._results.outcome(
            call,
            failed(text, terminate=terminate, refused=verdict == "refused"),
            locale=scope.locale,
            ceiling=ceiling_of(scope),
            verdict=verdict,
            reason=reason,
            arguments_json=arguments_json,
            fault=fault,
            about=about,
            spec=spec,
        )

    def _context(self, scope: Scope, call: StoredCall, conversation: Conversation) -> CallContext:
        return CallContext(
            agent_id=scope.agent.id,
            conversation_id=conversation.id,
            run_id=scope.run_id,
            call_id=call.id,
            parent_call_id=scope.parent_call_id,
            workspace=self._grant_for(scope.agent),
            locale=scope.locale,
            channel=conversation.channel,
            source=scope.source,
            autonomous=conversation.autonomous,
            budget_left_usd=scope.budget_left_usd,
            output_chars=SCRIPT_ANSWER_CHARS if scope.whole_results else scope.agent.tool_output_chars,
        )


def ceiling_of(scope: Scope) -> Ceiling:
    """How much of one result is handed on."""
    agent = scope.agent
    if scope.whole_results:
        return Ceiling(_WHOLE_CHARS, None)
    if agent.own_output_ceiling:
        return Ceiling(agent.tool_output_chars, None)
    return Ceiling(agent.tool_output_chars)


def _repeatable(spec: ToolSpec) -> bool:
    """Whether a call may run again after its process died (TRN-148); never one of two phases."""
    return spec.replay_safe and not spec.two_phase


def _stale(decision: Approval) -> bool:
    """Whether the token of an approved call is missing, or about to be refused (PIP-091)."""
    return not decision.token or utc_now() - decision.created_at > timedelta(seconds=TOKEN_SECONDS)


def _prepare(held: HeldTool) -> Callable[[Mapping[str, Any]], Any] | None:
    if not held.spec.prepares_arguments:
        return None

    async def prepare(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return await held.host.prepare(held.spec.name, arguments)
        except CannotPrepare:
            return arguments

    return prepare

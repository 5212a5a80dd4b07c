"""Whether a call runs, is put before a person, or goes back to the model: a pure function.

The order is fixed and nothing configures it (TRN-185). Whatever is unclear asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from services.common.toolhost.contract import Ask, NoOpinion, Refuse, Routine, ToolSpec, Verdict
from services.orchestrator.store.records import GateVerdict, ReviewVerdict

ASK_USER = "ask_user"
# What would run though nobody looks at it: calls of these a second model may judge (PIP-100).
UNATTENDED: frozenset[GateVerdict] = frozenset({"autonomous", "always"})
# After so many denials in a row in one turn a person is asked (PIP-102).
MOST_DENIALS = 3


@dataclass(frozen=True, slots=True)
class Unjudged:
    """The host could not say what it thinks: a person is asked (TLS-021)."""


@dataclass(frozen=True, slots=True)
class Allow:
    """The call runs; `rule` names what allowed it."""

    verdict: GateVerdict
    rule: str = ""
    token: str = ""
    target_state: str = ""
    # For whoever is asked after all, by a review.
    preview: str = ""


@dataclass(frozen=True, slots=True)
class AskPerson:
    """A person decides.

    Attributes:
        cause: ``question``: there is nothing to authorise; ``must``: a reason, a failed judgement or
            an unknown earlier outcome, which no autonomy and no grant outweighs; ``approval``: the
            tool needs approval here; ``review``: the second model did not let it pass.
        reason: Of the host; "" when it gave none.
    """

    cause: Literal["question", "must", "repeated", "approval", "review"]
    reason: str = ""
    rule: str = ""
    preview: str = ""
    token: str = ""
    target_state: str = ""

    @property
    def may_always(self) -> bool:
        """Whether "always" may be offered: never when something must ask (TRN-203)."""
        return self.cause == "approval"


@dataclass(frozen=True, slots=True)
class Deny:
    """Refused outright; nobody is asked and nobody can approve it (TLS-020)."""

    text: str
    rule: str = ""


Decision = Allow | AskPerson | Deny


def decide(
    spec: ToolSpec,
    opinion: Verdict | Unjudged,
    *,
    autonomous: bool,
    grant: str | None,
    may_have_happened: bool = False,
) -> Decision:
    """Decide on one call.

    Args:
        spec: The tool.
        opinion: What its host thinks of this call.
        autonomous: Of the conversation, now.
        grant: The standing permission that covers the call, if one does.
        may_have_happened: An earlier, identical writing call ended with an unknown outcome (FLD-084).
    """
    if spec.name == ASK_USER:
        return AskPerson("question")
    if isinstance(opinion, Refuse):
        return Deny(opinion.text, opinion.rule)
    if isinstance(opinion, Ask):
        return AskPerson(
            "must", opinion.reason, opinion.rule, opinion.preview, opinion.token, opinion.target_state
        )
    if isinstance(opinion, Unjudged):
        return AskPerson("must", rule="unjudged")
    preview = opinion.preview if isinstance(opinion, NoOpinion) else ""
    token = opinion.token if isinstance(opinion, NoOpinion) else ""
    if may_have_happened:
        return AskPerson("repeated", "", "unknown_outcome", preview, token, opinion.target_state)
    if spec.two_phase and not token:
        # Without its first phase it would do nothing: the person sees that there is no preview (PIP-091).
        return AskPerson("must", rule="no_preview", target_state=opinion.target_state)
    if isinstance(opinion, Routine):
        return Allow("routine", opinion.rule, token, opinion.target_state)
    if not spec.requires_approval:
        return Allow("free", "", token, opinion.target_state)
    if autonomous:
        return Allow("autonomous", "", token, opinion.target_state, preview)
    if grant is not None:
        return Allow("always", grant, token, opinion.target_state, preview)
    return AskPerson("approval", "", "", preview, token, opinion.target_state)


def reviewed(
    allowed: Allow, verdict: ReviewVerdict, *, on_deny: Literal["ask", "deny"], denials: int
) -> Decision:
    """What becomes of a call that would run, after its review: at most it runs, as before (PIP-103).

    Args:
        allowed: The gate's decision without the review.
        verdict: Of the second model.
        on_deny: What a denial leads to (PIP-102).
        denials: How many judgements of this turn in a row were denials, this one included.
    """
    if verdict == "allow":
        return allowed
    if verdict == "deny" and on_deny == "deny" and denials < MOST_DENIALS:
        return Deny("", "review")
    return AskPerson("review", "", "review", allowed.preview, allowed.token, allowed.target_state)

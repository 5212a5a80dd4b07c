"""A judgement in words: for the person who is asked, and for the model whose call was refused."""

from __future__ import annotations

from services.common.wording import Locale, load
from services.orchestrator.calls.review.contract import Judgement


def reason(judgement: Judgement, locale: Locale, *, denials: int = 0) -> str:
    """Why a person is asked.

    Args:
        judgement: Any but one that allows the call.
        locale: Of the person.
        denials: How many denials in a row led to it; 0: it is asked for another reason (PIP-102).
    """
    words = load("orchestrator")
    if judgement.verdict == "none":
        return words.text(locale, f"calls.review.none.{judgement.silence}", route=judgement.route)
    key = "denied_often" if denials else judgement.verdict
    said = judgement.reason or words.text(locale, "calls.review.no_reason")
    return words.text(
        locale,
        f"calls.review.{key}",
        route=judgement.route,
        reason=said,
        **({"count": denials} if denials else {}),
    )


def said(judgement: Judgement, locale: Locale) -> str:
    """For the run: the model's own reason, or why there is none."""
    if judgement.silence is None:
        return judgement.reason
    return load("orchestrator").text(locale, f"calls.review.none.{judgement.silence}", route=judgement.route)


def refusal(judgement: Judgement, locale: Locale) -> str:
    """What the first model is answered: the reason and what would be acceptable (PIP-152)."""
    words = load("orchestrator")
    said = judgement.reason or words.text(locale, "calls.review.no_reason")
    lines = [words.text(locale, "calls.review.refused", reason=said)]
    if judgement.instead:
        lines.append(words.text(locale, "calls.review.instead", instead=judgement.instead))
    lines.append(words.text(locale, "calls.review.go_on"))
    return "\n".join(lines)

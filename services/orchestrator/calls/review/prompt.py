"""What a reviewer is asked (PIP-148, PIP-151)."""

from __future__ import annotations

from services.common.fence import fenced
from services.common.wording import Locale, load
from services.orchestrator.calls.review.contract import ReviewRequest, Seen
from services.orchestrator.models.contract import ChatMessage, ModelRequest, Route

_ANSWER_TOKENS = 600


def review_request(
    request: ReviewRequest, seen: Seen, *, agent_id: str, route: Route, locale: Locale
) -> ModelRequest:
    """The model call: task, policy and form of the answer; then the call as data.

    With ``sees: call`` no word of the conversation, of a file or of a page is in it but those that
    the arguments themselves hold.
    """
    words = load("orchestrator")
    system = "\n\n".join(
        (
            words.text(locale, "prompt.policy.reviewer"),
            seen.policy,
            words.text(locale, "prompt.review.answer"),
        )
    )
    arguments = fenced(request.arguments_json, words.text(locale, "prompt.review.arguments"))
    call = words.text(locale, "prompt.review.call", tool=request.tool)
    return ModelRequest(
        routes=[route],
        system=system,
        messages=[*seen.messages, ChatMessage("user", f"{call}\n\n{arguments}")],
        tools=seen.tools,
        agent_id=agent_id,
        purpose="review",
        max_output_tokens=_ANSWER_TOKENS,
    )

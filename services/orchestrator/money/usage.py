"""What a reply used, as it is stored."""

from __future__ import annotations

from services.orchestrator.models.contract import Reply
from services.orchestrator.store.records import Usage


def stored_usage(reply: Reply) -> Usage:
    """Its tokens, as far as the provider said."""
    return Usage(
        prompt_tokens=reply.usage.prompt_tokens,
        completion_tokens=reply.usage.completion_tokens,
        cached_tokens=reply.usage.cached_tokens,
        reasoning_tokens=reply.usage.reasoning_tokens,
    )

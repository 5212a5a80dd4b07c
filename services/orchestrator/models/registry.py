"""The providers that one configuration makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import httpx

from services.orchestrator.models import config as names
from services.orchestrator.models.config import ModelsConfig
from services.orchestrator.models.providers.base import Provider
from services.orchestrator.models.providers.chat_completions import ChatCompletions
from services.orchestrator.models.providers.dialect import ollama, openai, openrouter
from services.orchestrator.models.providers.fake import Fake


def make_providers(
    config: ModelsConfig,
    client: httpx.AsyncClient,
    *,
    sleep: Callable[[float], Awaitable[None]],
    without_usage: set[str],
) -> Mapping[str, Provider]:
    """Make every provider by name, those without a key included.

    Args:
        sleep: For ``fake:slow``.
        without_usage: See `ChatCompletions`.
    """
    dialects = (
        openrouter(
            config.variable(names.OPENROUTER_URL),
            config.variable(names.OPENROUTER_KEY),
            config.openrouter_providers,
            config.openrouter_provider_fallbacks,
        ),
        ollama(config.variable(names.OLLAMA_URL)),
        openai(config.variable(names.OPENAI_URL), config.variable(names.OPENAI_KEY)),
    )
    spoken: list[Provider] = [
        ChatCompletions(client, dialect, config.limits, tuple(config.secrets), without_usage)
        for dialect in dialects
    ]
    return {provider.name: provider for provider in [*spoken, Fake(sleep)]}

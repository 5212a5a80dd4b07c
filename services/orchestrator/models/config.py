"""What the model layer is configured with; replaced as a whole when a key or a setting changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from services.orchestrator.models.contract import Route

RoutesSource = Literal["env", "config", "default"]

# Environment variables read here, keys and addresses alike.
OPENROUTER_KEY = "OPENROUTER_API_KEY"
OPENROUTER_URL = "OPENROUTER_BASE_URL"
OPENAI_KEY = "OPENAI_API_KEY"
OPENAI_URL = "OPENAI_BASE_URL"
OLLAMA_URL = "OLLAMA_BASE_URL"
KEY_NAMES = (OPENROUTER_KEY, OPENAI_KEY)


@dataclass(frozen=True, slots=True)
class Price:
    """The owner's own price of a route, in USD per million tokens; 0 for a local model (FLD-018)."""

    input: float
    output: float
    # None: as `input`.
    cached_input: float | None = None
    # The most tokens a reply of the route has; bounds estimated charges. None: its window.
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a provider may be silent and how large a call may be."""

    connect_seconds: float = 10
    # To the first data of the stream, and between two; comment lines do not count (FLD-009).
    first_data_seconds: float = 120
    between_data_seconds: float = 60
    # For usage and the end of the stream once the reply itself is whole.
    trailer_seconds: float = 10
    request_bytes: int = 4_000_000
    reply_bytes: int = 16_000_000


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """Routes, keys, prices and limits."""

    # The crew's own; agents without a usable route of theirs fall back to them (TRN-237).
    routes: Sequence[Route]
    routes_source: RoutesSource = "default"
    # Keys and addresses by the name of their environment variable. Never printed.
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    openrouter_providers: Sequence[str] = ()
    openrouter_provider_fallbacks: bool = True
    # The model ``*`` stands for all models of its provider.
    prices: Mapping[Route, Price] = field(default_factory=dict)
    # Windows of routes whose provider does not tell them (FLD-003). ``*`` as in `prices`.
    context_tokens: Mapping[Route, int] = field(default_factory=dict)
    limits: Limits = Limits()

    def variable(self, name: str) -> str:
        """The value of an environment variable without surrounding blanks; "" when unset."""
        return self.variables.get(name, "").strip()

    def price(self, route: Route) -> Price | None:
        """The owner's own price of a route, given for it or for all models of its provider."""
        return self.prices.get(route) or self.prices.get(Route(route.provider, "*"))

    def window(self, route: Route) -> int | None:
        """The tokens that the owner gives for a route, or for all models of its provider."""
        return self.context_tokens.get(route) or self.context_tokens.get(Route(route.provider, "*"))

    @property
    def secrets(self) -> Sequence[str]:
        """The configured key values, for masking."""
        return tuple(value for name in KEY_NAMES if (value := self.variable(name)))

    @property
    def addresses(self) -> Sequence[str]:
        """The configured addresses; a change of one is a change of provider."""
        return tuple(self.variable(name) for name in (OPENROUTER_URL, OPENAI_URL, OLLAMA_URL))

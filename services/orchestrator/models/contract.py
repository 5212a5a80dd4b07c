"""What a model call takes and gives: the language between the turn loop and the providers.

`Models.stream` takes a `ModelRequest` and yields `ModelEvent`s; the last one is `Completed`. What
goes wrong is raised as one of the `ModelError`s. Nothing here names a database row, a tool's
implementation or a secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from services.common.wording import Catalogue, Locale

Role = Literal["user", "assistant", "tool"]
Effort = Literal["minimal", "low", "medium", "high"]

# Why an attempt on a route failed.
FaultKind = Literal[
    "status",  # the server answered with an error status
    "upstream",  # an error object inside an answer that began well
    "transport",  # no connection, or it ended early
    "timeout",  # silence for longer than FLD-009 allows
    "malformed",  # not a chat-completions stream
    "overflow",  # the prompt does not fit the model's window
    "passed_over",  # failed before, and not asked this time (FLD-010)
    "unknown_provider",  # no provider of that name
    "no_key",  # its provider has no key
]


@dataclass(frozen=True, slots=True, order=True)
class Route:
    """A model at a provider."""

    provider: str
    model: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``provider:model``, split at the first colon (TRN-235).

        Raises:
            ValueError: A part is missing.
        """
        provider, colon, model = text.strip().partition(":")
        provider, model = provider.strip(), model.strip()
        if not (colon and provider and model):
            raise ValueError(f"{text!r} is not provider:model")
        return cls(provider, model)

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """All that a model is told of a tool (PIP-001)."""

    name: str
    description: str
    # JSON Schema, an object at the root.
    parameters: Mapping[str, Any]
    # Constrained sampling: a schema or grammar request, False to switch it off, None for no word
    # of it (PIP-115).
    strict: Mapping[str, Any] | Literal[False] | None = None


@dataclass(frozen=True, slots=True)
class WireCall:
    """A tool call as it goes back to a provider, under the id used on the wire (FLD-002)."""

    id: str
    name: str
    # JSON text of an object.
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the prompt after the system text."""

    role: Role
    content: str
    tool_calls: Sequence[WireCall] = ()
    # Of a tool message: the wire id of the call that it answers.
    tool_call_id: str | None = None
    # `Reply.opaque` of the reply this message was; returned to the same provider and family only.
    opaque: str | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call."""

    # In the order they are tried; routes without a key are skipped (TRN-237).
    routes: Sequence[Route]
    system: str
    messages: Sequence[ChatMessage]
    tools: Sequence[ToolDeclaration] = ()
    reasoning: Effort | None = None
    agent_id: str = ""
    # What the call is for, as the ledger names it: "turn", "title", …
    purpose: str = "turn"
    max_output_tokens: int | None = None
    # How many characters of `system` come before what changes from day to day; the place of a
    # cache marker for providers that cache on request (FLD-012). None: all of it.
    stable_system_chars: int | None = None

    @property
    def chars(self) -> int:
        """Characters of everything that is sent, the schemas of tools apart."""
        told = sum(len(tool.name) + len(tool.description) for tool in self.tools)
        calls = sum(len(call.name) + len(call.arguments) for m in self.messages for call in m.tool_calls)
        return len(self.system) + sum(len(message.content) for message in self.messages) + told + calls


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call; None where the provider did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class BrokenArguments:
    """Why the arguments of a call are no JSON object, without the text itself (TRN-128).

    `key` and `values` make the sentence that the model is answered with.
    """

    # Characters received.
    length: int
    # Character where the JSON broke, or where the text stopped.
    position: int
    # The characters around it, control characters written like <U+000A>.
    context: str
    # The reply hit the output limit inside these arguments.
    truncated: bool
    key: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """One tool call of a finished reply."""

    # As the provider wrote it, possibly repeated; a UUID where it wrote none (TRN-131).
    provider_id: str
    # As the model wrote it, possibly of no tool that exists, possibly empty.
    name: str
    # JSON text of an object with the digits as written; "{}" when `broken`.
    arguments: str
    broken: BrokenArguments | None = None
    # The reply stopped at the output limit, so no call of it may run (PIP-013, TRN-130).
    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """Why one attempt failed: a sentence for people by its catalogue key, never a secret."""

    kind: FaultKind
    key: str
    values: Mapping[str, object] = field(default_factory=dict)
    status: int | None = None

    def sentence(self, catalogue: Catalogue, locale: Locale) -> str:
        """What happened, for a person."""
        return catalogue.text(locale, self.key, **self.values)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One route that was asked, retry included, and failed."""

    route: Route
    fault: Fault
    ms: int


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished reply."""

    text: str
    calls: Sequence[ReplyCall]
    # As the provider wrote it ("stop", "length", "tool_calls", "content_filter", …); None: unsaid.
    finish_reason: str | None
    # The route that answered.
    route: Route
    usage: Usage
    # None: the price is unknown, which is not 0 (TRN-259).
    cost_usd: float | None
    # From sending the answered request to its first text, thought or call; None: it had none.
    first_token_ms: int | None
    # Duration of the answered attempt.
    ms: int
    # JSON text to store with the message and hand back in `ChatMessage.opaque` (FLD-001). Never
    # shown, logged, searched or exported.
    opaque: str | None = None
    # Attempts of this call that had begun to answer and were given up: each is one more call at
    # unknown cost (TRN-246, TRN-267).
    abandoned: Sequence[Route] = ()
    # Characters that no store or provider takes, written as U+FFFD (FLD-014).
    replaced_chars: int = 0
    # The cost was worked out of the lengths of texts, since no tokens were reported (FLD-018).
    cost_estimated: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """A route is being asked. Comes again after each `RouteGivenUp` with a next route."""

    route: Route


@dataclass(frozen=True, slots=True)
class Served:
    """The provider has begun to answer: who leaves now leaves a call of unknown cost (TRN-267)."""

    route: Route


@dataclass(frozen=True, slots=True)
class Thinking:
    """The model thinks; at most once per call, without the thoughts (TRN-257)."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text to show."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """More of the arguments of call number `index` of this reply.

    An empty `name` calls off what came for `index` in this `attempt` (CNV-257).
    """

    index: int
    name: str
    chunk: str
    # Counts from 1 over retries and routes.
    attempt: int


@dataclass(frozen=True, slots=True)
class RouteGivenUp:
    """A route failed before giving any text (TRN-238, TRN-241)."""

    route: Route
    error: Fault
    next_route: Route | None
    ms: int


@dataclass(frozen=True, slots=True)
class Completed:
    """The reply is whole; nothing comes after it."""

    reply: Reply


ModelEvent = Started | Served | Thinking | TextDelta | CallDelta | RouteGivenUp | Completed


class ModelError(Exception):
    """A model call that gave no whole reply.

    Args:
        key: Catalogue key of the sentence for people.
        values: What the sentence names. Never a secret.
        abandoned: See `Reply.abandoned`.
    """

    def __init__(
        self, key: str, values: Mapping[str, object] | None = None, *, abandoned: Sequence[Route] = ()
    ) -> None:
        super().__init__(key)
        self.key = key
        self.values: Mapping[str, object] = values or {}
        self.abandoned = tuple(abandoned)

    def sentence(self, catalogue: Catalogue, locale: Locale) -> str:
        """What happened and what to do, for a person; never a traceback or a secret (TRN-323)."""
        return catalogue.text(locale, self.key, **self.values)


class AllRoutesFailed(ModelError):
    """Every route was asked and failed before any text (TRN-242)."""

    def __init__(self, attempts: Sequence[Attempt], *, abandoned: Sequence[Route] = ()) -> None:
        super().__init__("models.error.all_failed", abandoned=abandoned)
        self.attempts = tuple(attempts)

    def sentence(self, catalogue: Catalogue, locale: Locale) -> str:
        """Every route with its reason."""
        reasons = (
            f"- {attempt.route}: {attempt.fault.sentence(catalogue, locale)}" for attempt in self.attempts
        )
        return catalogue.text(locale, self.key, reasons="\n".join(reasons))


class NoUsableRoute(AllRoutesFailed):
    """No provider of any route can be asked, the crew's own routes included (TRN-237).

    Args:
        routes: The routes that were considered.
        missing: Environment variables any of which would make one usable.
    """

    def __init__(self, routes: Sequence[Route], missing: Sequence[str]) -> None:
        super().__init__(())
        self.key = "models.error.no_route" if missing else "models.error.no_route_at_all"
        self.values = {"routes": ", ".join(map(str, routes)) or "-", "missing": ", ".join(missing)}

    def sentence(self, catalogue: Catalogue, locale: Locale) -> str:
        """Which routes there are and what they lack."""
        return ModelError.sentence(self, catalogue, locale)


class BrokenOff(ModelError):
    """The stream failed after text was shown; no other try is made (TRN-239).

    `abandoned` includes the broken attempt itself.
    """

    def __init__(
        self,
        *,
        route: Route,
        fault: Fault,
        partial_text: str,
        had_calls: bool,
        ms: int,
        abandoned: Sequence[Route] = (),
    ) -> None:
        super().__init__("models.error.broken_off", abandoned=abandoned)
        self.route = route
        self.fault = fault
        self.partial_text = partial_text
        # Whether a tool call had begun (FLD-013 continues only replies that had none).
        self.had_calls = had_calls
        self.ms = ms

    def sentence(self, catalogue: Catalogue, locale: Locale) -> str:
        """Which route broke off, and why."""
        reason = self.fault.sentence(catalogue, locale)
        return catalogue.text(locale, self.key, route=self.route, reason=reason)


class TooLargeForModel(ModelError):
    """The prompt was refused for its size, by the model's window or by the request limit.

    Raised at the first route that refuses (FLD-004); a smaller prompt may pass.

    Args:
        route: The route that refused.
        limit_bytes: The request limit that was passed (FLD-015); None when the model refused.
    """

    def __init__(
        self,
        key: str,
        values: Mapping[str, object],
        *,
        route: Route,
        limit_bytes: int | None = None,
        abandoned: Sequence[Route] = (),
    ) -> None:
        super().__init__(key, values, abandoned=abandoned)
        self.route = route
        self.limit_bytes = limit_bytes

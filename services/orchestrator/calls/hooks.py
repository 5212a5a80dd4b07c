"""Code of the product that looks at calls before the gate and at results after the run (PIP-017 to 019).

None is built in yet. A before-hook that fails blocks the call; an after-hook that fails makes the
result an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog

from services.common.toolhost import exact_json
from services.common.toolhost.contract import Block, ToolResult, text_result
from services.common.wording import load
from services.orchestrator.calls.arguments import Faulty, Fitted
from services.orchestrator.calls.contract import Scope
from services.orchestrator.store.records import StoredCall

FitAgain = Callable[[str], Awaitable[Fitted | Faulty]]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class BeforeCall:
    """What a before-hook is told (PIP-124). The arguments are validated and read-only."""

    scope: Scope
    call: StoredCall
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Blocked:
    """The call does not run."""

    reason: str
    terminate: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """The call goes on with these arguments, if they fit (PIP-018)."""

    arguments: Mapping[str, Any]


class BeforeHook(Protocol):
    """Looks at a call before the gate."""

    @property
    def name(self) -> str:
        """As it is named when it blocks."""

    async def before(self, request: BeforeCall) -> Blocked | Changed | None:
        """Block the call, change its arguments where it may, or let it go on to the next hook."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Fields of a result that an after-hook replaces; None leaves a field as it is."""

    content: Sequence[Block] | None = None
    details: Mapping[str, Any] | None = None
    is_error: bool | None = None
    cost_usd: float | None = None
    terminate: bool | None = None


class AfterHook(Protocol):
    """Looks at a result before it is shortened and stored."""

    @property
    def name(self) -> str:
        """As it is named when it fails."""

    async def after(self, request: BeforeCall, result: ToolResult) -> Patch | None:
        """Replace fields of the result, or leave it."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of this orchestrator, in the order they run."""

    before: Sequence[BeforeHook] = ()
    after: Sequence[AfterHook] = ()
    # Names of the before-hooks that may change arguments.
    may_change: frozenset[str] = frozenset()

    async def ask_before(
        self, scope: Scope, call: StoredCall, fitted: Fitted, fit_again: FitAgain
    ) -> Blocked | Fitted:
        """The first block, a failing hook's included; else the arguments to go on with.

        Args:
            scope: Of the call.
            call: As the model wrote it.
            fitted: Its validated arguments.
            fit_again: Validates arguments that a hook changed; what does not fit blocks the call.
        """
        for hook in self.before:
            # A copy for each: what a hook does to it changes nothing.
            request = BeforeCall(scope, call, exact_json.loads_object(fitted.json))
            try:
                answer: Blocked | Changed | Fitted | Faulty | None = await hook.before(request)
                if isinstance(answer, Changed):
                    if hook.name not in self.may_change:
                        raise PermissionError("this hook may not change arguments")
                    answer = await fit_again(exact_json.dumps(answer.arguments))
            except Exception:
                _log.exception("before_hook_failed", hook=hook.name, call_id=call.id)
                return Blocked(load("orchestrator").text(scope.locale, "calls.hook_failed", hook=hook.name))
            match answer:
                case Blocked():
                    return answer
                case Faulty(text=problem):
                    return Blocked(
                        load("orchestrator").text(
                            scope.locale, "calls.hook_changed", hook=hook.name, problem=problem
                        )
                    )
                case Fitted():
                    fitted = answer
                case None:
                    pass
        return fitted

    async def apply_after(self, request: BeforeCall, result: ToolResult) -> ToolResult:
        """`result` with what the after-hooks replaced."""
        for hook in self.after:
            try:
                patch = await hook.after(request, result)
            except Exception:
                _log.exception("after_hook_failed", hook=hook.name, call_id=request.call.id)
                text = load("orchestrator").text(
                    request.scope.locale, "calls.after_hook_failed", hook=hook.name
                )
                return text_result(text, is_error=True, outcome=result.outcome)
            if patch is not None:
                fields = {name: getattr(patch, name) for name in Patch.__slots__}
                result = replace(result, **{name: each for name, each in fields.items() if each is not None})
        return result

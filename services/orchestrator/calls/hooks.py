"""Code of the product that looks at calls before the gate and at results after the run (PIP-017 to 019).

None is built in yet. A before-hook that fails blocks the call; an after-hook that fails makes the
result an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog

from services.common.toolhost.contract import Block, ToolResult, text_result
from services.common.wording import load
from services.orchestrator.calls.contract import Scope
from services.orchestrator.store.records import StoredCall

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


class BeforeHook(Protocol):
    """Looks at a call before the gate."""

    @property
    def name(self) -> str:
        """As it is named when it blocks."""

    async def before(self, request: BeforeCall) -> Blocked | None:
        """Block the call, or let it go on to the next hook."""


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

    async def ask_before(self, request: BeforeCall) -> Blocked | None:
        """The first block, a failing hook's included."""
        for hook in self.before:
            try:
                blocked = await hook.before(request)
            except Exception:
                _log.exception("before_hook_failed", hook=hook.name, call_id=request.call.id)
                text = load("orchestrator").text(request.scope.locale, "calls.hook_failed", hook=hook.name)
                return Blocked(text)
            if blocked is not None:
                return blocked
        return None

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

"""What a person who is asked reads first: one sentence about the call (TRN-218, FLD-025)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from services.common.shown_text import shown
from services.common.toolhost import exact_json
from services.common.toolhost.contract import ToolSpec
from services.common.wording import Locale, load
from services.orchestrator.calls import gate, grants
from services.orchestrator.calls.arguments import Fitted
from services.orchestrator.calls.contract import ApprovalDraft, Scope
from services.orchestrator.calls.gate import ASK_USER
from services.orchestrator.calls.toolbox import HeldTool
from services.orchestrator.store.records import Review

# {path}; {path|files.path}: the first of several that the call has; `.` goes into a list's objects.
_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_.|]+)\}")
_MOST_LISTED = 3
# Of one argument within the sentence; the card shows all arguments in full besides.
_ARGUMENT_CHARS = 200
_QUESTION_CHARS = 4000
_MOST_OPTIONS = 20
_OPTION_CHARS = 500


def draft(
    scope: Scope, held: HeldTool, fitted: Fitted, ask: gate.AskPerson, review: Review | None = None
) -> ApprovalDraft:
    """What a person is to be asked about a call, with all that the gate knows of it."""
    question = ask.cause == "question"
    reason = ask.reason
    if ask.cause == "repeated":
        reason = load("orchestrator").text(scope.locale, "calls.reason.repeated")
    options, default = question_of(fitted.arguments) if question else ((), None)
    allowable = grants.offered(held.spec.name, fitted.arguments) if ask.may_always else ()
    return ApprovalDraft(
        kind="question" if question else "tool",
        tool=held.spec.name,
        arguments_json=fitted.json,
        arguments_sha256=fitted.sha256,
        reason=reason,
        rule=ask.rule,
        summary=summary(held.spec, fitted.arguments, scope.locale),
        preview=ask.preview,
        options=options,
        default_answer=default,
        may_always=bool(allowable),
        grants=allowable,
        token=ask.token,
        target_state=ask.target_state,
        review=review,
    )


def summary(spec: ToolSpec, arguments: Mapping[str, Any], locale: Locale) -> str:
    """The tool's own sentence with its arguments put in, or its label; a question as it is asked."""
    if spec.name == ASK_USER:
        return shown(str(arguments.get("question", ""))[:_QUESTION_CHARS], locale)
    template = spec.card or spec.label
    return _PLACEHOLDER.sub(lambda hit: _argument(_first(arguments, hit[1]), locale), template)


def question_of(arguments: Mapping[str, Any]) -> tuple[Sequence[str], str | None]:
    """Options and default of a question (TRN-220)."""
    options = arguments.get("options")
    listed = [str(option)[:_OPTION_CHARS] for option in options] if isinstance(options, list) else []
    default = arguments.get("default")
    return tuple(listed[:_MOST_OPTIONS]), str(default) if default is not None else None


def _first(arguments: Mapping[str, Any], alternatives: str) -> Any:
    for alternative in alternatives.split("|"):
        name, _, inner = alternative.partition(".")
        value = arguments.get(name)
        if inner and isinstance(value, list):
            found = [item[inner] for item in value if isinstance(item, Mapping) and inner in item]
            more = f" (+{len(found) - _MOST_LISTED})" if len(found) > _MOST_LISTED else ""
            value = ", ".join(str(item) for item in found[:_MOST_LISTED]) + more if found else None
        if value is not None:
            return value
    return None


def _argument(value: Any, locale: Locale) -> str:
    if value is None:
        return "…"
    text = value if isinstance(value, str) else exact_json.dumps(value)
    line = shown(text[:_ARGUMENT_CHARS], locale).replace("\n", "⏎")
    return f"{line}…" if len(text) > _ARGUMENT_CHARS else line

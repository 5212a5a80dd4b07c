"""Results for calls that will not run (TRN-103, 111, 143 to 149, 165, 175)."""

from __future__ import annotations

from typing import Literal

from services.common.wording import Locale
from services.orchestrator.calls.contract import CallOutcome
from services.orchestrator.store.records import Approval, StoredCall

Why = Literal[
    "out_of_steps",
    "loop",
    "handed_over",
    "interrupted",
    "restarted",
    "not_started",
    "budget",
    "time",
    "errors",
]


def close(call: StoredCall, why: Why, locale: Locale) -> CallOutcome:
    """The result of a call that the turn loop closes without running it."""
    raise NotImplementedError


def close_with_decision(call: StoredCall, decision: Approval | None, locale: Locale) -> CallOutcome:
    """The result of a call that an earlier turn left open, by what is known of it (TRN-143, 144)."""
    raise NotImplementedError

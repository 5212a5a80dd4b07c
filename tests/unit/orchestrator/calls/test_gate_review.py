"""A review after the gate: it can hold a call up, never let one through."""

from __future__ import annotations

import itertools

import pytest

from services.orchestrator.calls.gate import Allow, AskPerson, Deny, reviewed

ALLOWED = Allow("autonomous", "", "token", "state", "a preview")


@pytest.mark.spec("PIP-102", "PIP-103")
@pytest.mark.parametrize(
    ("verdict", "on_deny", "denials", "expected"),
    [
        ("allow", "ask", 0, Allow),
        ("allow", "deny", 2, Allow),
        ("ask", "ask", 0, AskPerson),
        ("ask", "deny", 0, AskPerson),
        ("none", "ask", 0, AskPerson),
        ("none", "deny", 0, AskPerson),
        ("deny", "ask", 1, AskPerson),
        ("deny", "deny", 1, Deny),
        ("deny", "deny", 2, Deny),
        ("deny", "deny", 3, AskPerson),
    ],
)
def test_what_a_verdict_leads_to(verdict: str, on_deny: str, denials: int, expected: type) -> None:
    decision = reviewed(ALLOWED, verdict, on_deny=on_deny, denials=denials)  # type: ignore[arg-type]
    assert type(decision) is expected
    if isinstance(decision, Allow):
        assert decision == ALLOWED
    if isinstance(decision, AskPerson):
        # What the host gave for the person who is asked goes to the card, and "always" would not help.
        assert (decision.preview, decision.token, decision.target_state) == ("a preview", "token", "state")
        assert not decision.may_always


@pytest.mark.spec("PIP-103")
def test_nothing_but_a_clear_allow_lets_a_call_run() -> None:
    for verdict, on_deny, denials in itertools.product(("ask", "deny", "none"), ("ask", "deny"), range(9)):
        decision = reviewed(ALLOWED, verdict, on_deny=on_deny, denials=denials)  # type: ignore[arg-type]
        assert not isinstance(decision, Allow)

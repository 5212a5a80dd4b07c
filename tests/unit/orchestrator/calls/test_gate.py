"""The gate's order, as a table (TRN-185)."""

from __future__ import annotations

import itertools

import pytest

from services.common.toolhost.contract import Ask, NoOpinion, Refuse, Routine, ToolSpec
from services.orchestrator.calls.gate import Allow, AskPerson, Deny, Unjudged, decide

OPINIONS = {
    "none": NoOpinion(),
    "routine": Routine("allow list"),
    "ask": Ask("matches sudo", "sudo"),
    "silent ask": Ask(""),
    "refuse": Refuse("outside"),
    "unjudged": Unjudged(),
}


def tool(name: str = "write", *, requires_approval: bool = True) -> ToolSpec:
    return ToolSpec(name, "", {}, name, "change", "change", requires_approval=requires_approval)


def verdict(opinion: str, *, needs: bool, autonomous: bool, grant: str | None, repeated: bool = False) -> str:
    decision = decide(
        tool(requires_approval=needs),
        OPINIONS[opinion],
        autonomous=autonomous,
        grant=grant,
        may_have_happened=repeated,
    )
    match decision:
        case Allow(verdict=why):
            return why
        case AskPerson(cause=cause):
            return cause
        case Deny():
            return "refused"


@pytest.mark.spec("TRN-185", "TRN-186", "TLS-017", "TLS-047", "TRN-192")
@pytest.mark.parametrize(
    ("opinion", "needs", "autonomous", "grant", "expected"),
    [
        ("none", False, False, None, "free"),
        ("none", True, False, None, "approval"),
        ("none", True, True, None, "autonomous"),
        ("none", True, False, "write", "always"),
        ("routine", True, False, None, "routine"),
        ("routine", False, True, "write", "routine"),
        ("ask", False, True, "write", "must"),
        ("ask", True, True, "write", "must"),
        ("silent ask", False, True, "write", "must"),
        ("refuse", True, False, None, "refused"),
        ("refuse", False, True, "write", "refused"),
        ("unjudged", False, True, "write", "must"),
    ],
)
def test_the_order_is_fixed(opinion, needs, autonomous, grant, expected):
    assert verdict(opinion, needs=needs, autonomous=autonomous, grant=grant) == expected


@pytest.mark.spec("TRN-191", "TRN-193", "TRN-203", "TLS-051")
def test_no_autonomy_and_no_grant_outweighs_a_reason_a_refusal_or_an_unknown_outcome():
    for needs, autonomous, grant in itertools.product((True, False), (True, False), (None, "write")):
        common = {"needs": needs, "autonomous": autonomous, "grant": grant}
        for opinion in ("ask", "silent ask", "unjudged"):
            assert verdict(opinion, **common) == "must"
            decision = decide(tool(), OPINIONS[opinion], autonomous=autonomous, grant=grant)
            assert isinstance(decision, AskPerson)
            assert not decision.may_always
        assert verdict("refuse", **common) == "refused"
        for opinion in ("none", "routine"):
            assert verdict(opinion, **common, repeated=True) == "repeated"


@pytest.mark.spec("TRN-185", "TRN-221")
def test_ask_user_asks_whatever_anyone_thinks():
    for opinion in OPINIONS.values():
        decision = decide(tool("ask_user"), opinion, autonomous=True, grant="ask_user")
        assert isinstance(decision, AskPerson)
        assert decision.cause == "question"


@pytest.mark.spec("PIP-091", "FLD-022")
def test_preview_token_and_state_travel_with_the_decision():
    asked = decide(tool(), Ask("why", "r", "diff", "t", "s"), autonomous=True, grant=None)
    assert asked == AskPerson("must", "why", "r", "diff", "t", "s")
    plain = decide(tool(), NoOpinion("diff", "t", "s"), autonomous=False, grant=None)
    assert plain == AskPerson("approval", "", "", "diff", "t", "s")
    assert decide(tool(), NoOpinion("diff", "t", "s"), autonomous=True, grant=None) == Allow(
        "autonomous", "", "t", "s", "diff"
    )

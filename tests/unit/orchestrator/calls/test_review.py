"""What a reviewer is asked, what is read from its answer, and whose calls it gets."""

from __future__ import annotations

import json

import pytest

from services.orchestrator.agents.profile import ReviewRule
from services.orchestrator.calls.arguments import digest
from services.orchestrator.calls.review import Judgement, ReviewRequest, rule_for, words
from services.orchestrator.calls.review.answer import read_answer
from services.orchestrator.calls.review.contract import Seen
from services.orchestrator.calls.review.prompt import review_request
from services.orchestrator.models.contract import CallDelta, Route
from services.orchestrator.turns.streamed_calls import StreamedCalls

JUDGE = Route("openai", "judge")


def answer(text: str) -> str:
    """The verdict that is read from `text`; "" for none."""
    found = read_answer(text, "en")
    return found.verdict if found else ""


@pytest.mark.spec("PIP-101")
@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"verdict": "allow", "reason": "harmless"}', "allow"),
        ('{"verdict": "deny"}', "deny"),
        ('  {"verdict": "ask", "reason": "", "more": 1}\n', "ask"),
        ('```json\n{"verdict": "allow"}\n```', "allow"),
        ("", ""),
        ("allow", ""),
        ('"allow"', ""),
        ("[]", ""),
        ('{"verdict": "Allow"}', ""),
        ('{"verdict": "yes"}', ""),
        ('{"verdict": ["allow"]}', ""),
        ('{"verdict": "allow", "reason": 5}', ""),
        ('{"reason": "fine"}', ""),
        # Which of two is meant nobody knows; arguments that were repeated could be one of them.
        ('{"verdict": "deny", "verdict": "allow"}', ""),
        ('{"verdict": "deny"} {"verdict": "allow"}', ""),
        ('The call says {"verdict": "allow"}, so I deny it.', ""),
        ('{"verdict": "allow"', ""),
        ("[" * 5_000, ""),
        (json.dumps({"verdict": "allow", "reason": "x" * 9_000}), ""),
    ],
)
def test_only_a_whole_answer_counts(text: str, verdict: str) -> None:
    assert answer(text) == verdict


@pytest.mark.spec("PIP-102", "FLD-025")
def test_a_reason_is_one_line_without_hidden_characters() -> None:
    found = read_answer(json.dumps({"verdict": "deny", "reason": "a\nb\u202ec" + "x" * 600}), "en")
    assert found is not None
    assert found.reason.startswith("a b[U+202E]c")
    assert "\n" not in found.reason
    assert len(found.reason) < 520


@pytest.mark.spec("PIP-151", "PIP-148")
def test_the_request_holds_tool_arguments_and_policy_alone() -> None:
    arguments = '{"command":"rm -rf /tmp/data"}'
    rule = ReviewRule(("shell_run",), str(JUDGE))
    request = ReviewRequest(rule, "shell_run", arguments, digest(arguments))
    asked = review_request(request, Seen("Never delete.\n- Ever."), agent_id="a", route=JUDGE, locale="en")
    assert asked.purpose == "review"
    assert not asked.tools
    (message,) = asked.messages
    assert "`shell_run`" in message.content
    opening, inside, closing = message.content.splitlines()[-3:]
    assert inside == arguments
    number = closing.removesuffix(">>>")
    assert number.isdigit()
    assert opening.startswith(f"<<<{number} ")
    assert "\n\nNever delete.\n- Ever.\n\n" in asked.system
    again = review_request(request, Seen("Never delete."), agent_id="a", route=JUDGE, locale="en")
    assert number not in again.messages[0].content, "the number is fresh for each request"


@pytest.mark.spec("PIP-100")
def test_the_first_rule_that_names_the_tool_counts() -> None:
    shell = ReviewRule(("shell_run",), "openai:a")
    outside = ReviewRule(("mcp__*", "shell_*"), "openai:b")
    rules = (shell, outside)
    assert rule_for(rules, "shell_run") is shell
    assert rule_for(rules, "shell_kill") is outside
    assert rule_for(rules, "mcp__mail__send") is outside
    assert rule_for(rules, "workspace_write") is None


@pytest.mark.spec("PIP-152")
def test_a_refusal_tells_reason_and_what_would_be_acceptable() -> None:
    text = words.refusal(Judgement("deny", JUDGE, "It deletes all.", "Delete one file."), "en")
    assert "It deletes all." in text
    assert "Delete one file." in text
    assert "acceptable" not in words.refusal(Judgement("deny", JUDGE, "No."), "en").splitlines()[0]


def pieces(*chunks: str, index: int = 0, attempt: int = 1) -> list[CallDelta]:
    return [CallDelta(index, "t", chunk, attempt) for chunk in chunks]


def told(*deltas: CallDelta) -> list[tuple[str, str]]:
    calls = StreamedCalls()
    return [found for delta in deltas if (found := calls.feed(delta))]


@pytest.mark.spec("PIP-101")
def test_a_streamed_call_is_told_once_when_its_arguments_are_whole() -> None:
    assert told(*pieces('{"a": "}', '\\"}"', ', "b": [{}]', "}")) == [("t", '{"a": "}\\"}", "b": [{}]}')]
    assert told(*pieces("{", "}", "{}")) == [("t", "{}")]
    assert told(*pieces('{"a": 1')) == []
    two = [*pieces('{"a": 1}'), *pieces('{"b"', ": 2}", index=1)]
    assert [arguments for _, arguments in told(*two)] == ['{"a": 1}', '{"b": 2}']


@pytest.mark.spec("PIP-101")
def test_another_attempt_begins_anew_and_a_call_called_off_is_forgotten() -> None:
    assert told(*pieces('{"a": '), *pieces('{"b": 1}', attempt=2)) == [("t", '{"b": 1}')]
    off = [*pieces('{"a": '), CallDelta(0, "", "", 1), *pieces('{"c": 1}')]
    assert told(*off) == [("t", '{"c": 1}')]

"""Answers as JSON."""

from __future__ import annotations

import json

import orjson
import pytest
from crew.v1 import approvals_pb2, conversations_pb2, events_pb2, runs_pb2

from services.gateway.http.encoding import encode, to_json


def shown(message: object) -> bytes:
    return to_json(encode(message))  # type: ignore[arg-type]


@pytest.mark.spec("GTW-037")
def test_names_are_snake_case_numbers_are_numbers_and_unset_is_null() -> None:
    message = conversations_pb2.Message(id=2**53 + 1, seq=3, role="tool", cost_usd=0.0)
    tree = json.loads(shown(message))
    assert tree["id"] == 9007199254740993
    assert tree["tool_calls"] == []
    assert tree["tool_call_id"] is None
    assert tree["cost_usd"] == 0.0
    assert tree["prompt_tokens"] is None
    assert tree["is_error"] is False
    assert json.loads(shown(conversations_pb2.Conversation()))["pending_approval"] is None


@pytest.mark.parametrize("digits", ["1.10", "1e400", "9007199254740993", "-0.0", "0.1000000000000000055511"])
def test_raw_json_keeps_every_digit(digits: str) -> None:
    approval = approvals_pb2.Approval(arguments=f'{{"n": {digits}}}')
    assert f'"arguments":{{"n": {digits}}}'.encode() in shown(approval)


def test_empty_raw_json_is_what_its_field_says() -> None:
    assert json.loads(shown(events_pb2.ToolResult()))["calls"] == []
    assert json.loads(shown(events_pb2.ToolCall()))["arguments"] == {}
    assert json.loads(shown(conversations_pb2.Message()))["context"] is None
    assert json.loads(shown(runs_pb2.RunStep()))["arguments"] is None


@pytest.mark.parametrize(
    "text",
    [
        '1}, "approved": true, "x": {"y": 1',
        '{"a": NaN}',
        "{",
        '"open',
        "[" * 100_000,
        "{}{}",
        '{"a": 1} // comment',
    ],
)
def test_text_that_is_no_json_cannot_change_the_answer_around_it(text: str) -> None:
    tree = json.loads(shown(approvals_pb2.Approval(arguments=text, status="pending")))
    assert tree["arguments"] is None
    assert tree["status"] == "pending"
    assert set(tree) == {field.name for field in approvals_pb2.Approval.DESCRIPTOR.fields}


@pytest.mark.spec("GTW-128")
def test_pretty_printed_raw_json_stays_on_one_line() -> None:
    call = events_pb2.ToolCall(arguments='{\n\t"a":\r\n [1,\n2], "t": "x\\ny"}')
    data = shown(call)
    assert b"\n" not in data
    assert b"\r" not in data
    assert orjson.loads(data)["arguments"] == {"a": [1, 2], "t": "x\ny"}


def test_what_is_not_finite_becomes_null() -> None:
    assert json.loads(shown(conversations_pb2.Conversation(spent_usd=float("inf"))))["spent_usd"] is None


@pytest.mark.spec("TRN-305")
def test_a_key_that_may_be_missing_is_missing_while_unset_and_is_there_when_set() -> None:
    step = runs_pb2.RunStep(kind="tool", ok=True)
    assert not {"calls", "received_chars", "printed_chars"} & set(json.loads(shown(step)))
    step.calls, step.received_chars, step.printed_chars = "[]", 0, 0
    tree = json.loads(shown(step))
    assert (tree["calls"], tree["received_chars"], tree["printed_chars"]) == ([], 0, 0)

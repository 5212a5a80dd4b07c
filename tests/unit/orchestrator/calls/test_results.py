"""From a host's result to what the model gets and what is kept."""

from __future__ import annotations

import json

import pytest

from services.common.toolhost.contract import ImageBlock, TextBlock, ToolResult, text_result
from services.orchestrator.calls.masking import SecretMask
from services.orchestrator.calls.results import Ceiling, ResultMaker
from tests.unit.orchestrator.calls.parts import call


def made(result: ToolResult, name: str = "tool", chars: int = 8000, **fields):
    return ResultMaker(SecretMask()).outcome(
        call("1", name),
        result,
        locale=fields.pop("locale", "en"),
        ceiling=Ceiling(chars),
        verdict="free",
        **fields,
    )


@pytest.mark.spec("TLS-061", "TLS-059", "TLS-060", "PIP-114")
def test_no_result_is_empty_and_absence_differs_from_failure():
    texts = [
        made(ToolResult()).text,
        made(ToolResult(absent=True)).text,
        made(ToolResult(content=[TextBlock("  ")], is_error=True)).text,
        made(ToolResult(content=[ImageBlock("shots/a.png", "image/png")])).text,
    ]
    assert all(text.strip() for text in texts)
    assert len(set(texts)) == 4
    assert "shots/a.png" in texts[3]


@pytest.mark.spec("TLS-090", "TLS-095", "TRN-120", "TRN-303")
def test_a_long_result_is_shortened_and_says_how():
    outcome = made(text_result("x" * 20_000))
    assert len(outcome.text) <= 8000
    assert (outcome.shortened, outcome.original_chars) == ("cut", 20_000)
    whole = made(text_result("x" * 8000))
    assert (whole.text, whole.shortened, whole.original_chars) == ("x" * 8000, None, None)
    rows = made(text_result(json.dumps([{"id": n} for n in range(5000)])))
    assert rows.shortened == "structure"
    assert len(rows.text) <= 6000
    json.loads(rows.text)


@pytest.mark.spec("TLS-432")
def test_a_file_that_is_cut_says_where_to_read_on():
    lines = {"first_line": 1, "last_line": 3000, "total_lines": 3000}
    text = "".join(f"line {n}\n" for n in range(1, 3001))
    outcome = made(text_result(text, details=lines), "workspace_read")
    *_, last, mark = outcome.text.splitlines()
    shown = int(last.removeprefix("line "))
    assert mark.endswith(f"Lines 1-{shown} of 3000 shown; continue with offset={shown + 1}.")
    window = made(text_result(text, details={**lines, "first_line": 2}), "workspace_read")
    assert "continue with" not in window.text


@pytest.mark.spec("TLS-113", "TLS-027")
@pytest.mark.parametrize(("locale", "prefix"), [("en", "Tool error: "), ("vi", "Công cụ lỗi: ")])
def test_an_error_has_its_prefix_within_the_ceiling(locale, prefix):
    outcome = made(text_result("e" * 9000, is_error=True), chars=500, locale=locale)
    assert outcome.text.startswith(prefix + "e")
    assert len(outcome.text) <= 500
    assert outcome.shortened == "cut"


@pytest.mark.spec("TRN-297")
@pytest.mark.parametrize(("length", "kept"), [(600, 600), (700, 601)])
def test_the_lengths_of_a_step_are_the_messages_own(length, kept):
    assert len(made(text_result("e" * length, is_error=True)).step_output) == kept


@pytest.mark.spec("PIP-081", "FLD-069")
def test_a_commands_end_is_kept():
    text = "\n".join([*(f"line {n}" for n in range(5000)), "[exit code 2]"])
    assert made(text_result(text), "shell_run").text.endswith("line 4999\n[exit code 2]")
    assert not made(text_result(text), "workspace_read").text.endswith("[exit code 2]")


@pytest.mark.spec("FLD-014")
def test_what_cannot_be_stored_is_replaced_and_counted():
    outcome = made(text_result("a\0b\ud800c", details={"k\0": ["\udfff"]}))
    assert (
        outcome.text == "a\ufffdb\ufffdc\n[2 characters of this result cannot be stored and stand as \ufffd.]"
    )
    assert json.loads(outcome.details_json) == {"k\ufffd": ["\ufffd"]}
    outcome.text.encode()


def test_the_systems_own_line_is_never_cut_away():
    outcome = made(text_result("x" * 9000, is_error=True), chars=300, note="[stopped]")
    assert outcome.text.endswith("\n[stopped]")
    assert len(outcome.text) <= 300


@pytest.mark.parametrize("chars", [1, 2, 11, 12, 13, 40])
def test_the_smallest_ceilings_hold(chars):
    assert len(made(text_result("x" * 500, is_error=True), chars=chars, note="[n]").text) <= chars


def test_details_that_are_too_large_are_left_out():
    outcome = made(text_result("x", details={"a": "y" * 2_000_000}))
    assert list(json.loads(outcome.details_json)) == ["left_out_chars"]


def test_a_secret_is_masked_wherever_it_stands():
    maker = ResultMaker(SecretMask(["sk-12345678", "short"]))
    outcome = maker.outcome(
        call("1", "t"),
        text_result("sk-12345678 short", details={"sk-12345678": ("sk-12345678",)}),
        locale="en",
        ceiling=Ceiling(100),
        verdict="free",
        arguments_json='{"a":"sk-12345678"}',
    )
    assert outcome.text == "[secret] short"
    assert "sk-" not in outcome.details_json
    assert outcome.step_arguments == {"a": "[secret]"}

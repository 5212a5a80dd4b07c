"""What a run step keeps (TRN-294 to 302)."""

from __future__ import annotations

import json

import pytest

from services.orchestrator.calls.steps import step_arguments, step_output


@pytest.mark.spec("TRN-295", "TRN-298")
def test_a_success_keeps_160_characters_on_one_line():
    assert step_output("a \n\t b", ok=True) == "a b"
    assert step_output("ệ" * 160, ok=True) == "ệ" * 160
    assert step_output("ệ" * 161, ok=True) == "ệ" * 160 + "…"


@pytest.mark.spec("TRN-296", "TRN-297", "TLS-035")
def test_an_error_keeps_both_ends():
    assert step_output("x" * 600, ok=False) == "x" * 600
    text = "".join(chr(0x4E00 + n) for n in range(700))
    kept = step_output(text, ok=False)
    assert len(kept) == 601
    assert kept == f"{text[:200]}…{text[-400:]}"


@pytest.mark.spec("TRN-299", "TRN-300", "TLS-034")
def test_twelve_arguments_are_kept_and_the_rest_counted():
    arguments = {f"a{n}": n for n in range(15)}
    kept = step_arguments(json.dumps(arguments), "en")
    assert list(kept) == [*(f"a{n}" for n in range(12)), "…"]
    assert kept["…"] == "3 more arguments"
    assert step_arguments(json.dumps(arguments), "vi")["…"] == "còn 3 tham số nữa"
    long = step_arguments(json.dumps({"k" * 300: "v" * 300, "n": 10**300}), "en")
    assert [(len(name), len(value)) for name, value in long.items()] == [(160, 160), (1, 160)]
    assert step_arguments('{"n":1.10}', "en") == {"n": "1.10"}

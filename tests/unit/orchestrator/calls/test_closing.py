"""Calls that are closed without running."""

from __future__ import annotations

from typing import get_args

import pytest

from services.orchestrator.calls.closing import Why, answered_by_person, close, close_with_decision
from tests.unit.orchestrator.calls.parts import approval, call


@pytest.mark.spec("TRN-103", "TRN-144", "TRN-149", "TRN-165")
def test_every_way_of_closing_says_what_is_known_in_both_languages():
    texts = set()
    for why in get_args(Why):
        for locale in ("en", "vi"):
            outcome = close(call("1", "shell_run"), why, locale)
            assert not outcome.ok
            assert not outcome.terminate
            assert outcome.outcome == ("unknown" if why in {"interrupted", "restarted"} else "not_started")
            texts.add(outcome.text)
    assert len(texts) == 2 * len(get_args(Why))
    vietnamese = close(call("1", "x"), "restarted", "vi").text
    assert vietnamese.startswith("Server khởi động lại khi lời gọi này đang chạy")


@pytest.mark.spec("TRN-143", "TRN-144")
def test_an_open_call_is_closed_with_what_is_known_of_it():
    one = call("1", "write", "{}")
    for status, part in (("denied", "refused"), ("expired", "in time"), ("approved", "may or may not")):
        assert part in close_with_decision(one, approval(one, status, "{}"), "en").text
    assert "may or may not" in close_with_decision(one, None, "en").text
    question = call("2", "ask_user", "{}")
    answer = approval(question, "answered", "{}", kind="question", answer="blue")
    assert close_with_decision(question, answer, "en").text == "blue"


def test_an_approval_is_no_answer():
    one = call("1", "write")
    with pytest.raises(ValueError):
        answered_by_person(one, approval(one, "approved", "{}"), "en")

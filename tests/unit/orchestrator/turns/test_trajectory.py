"""Secrets out of exports, and Markdown that stays in order."""

from __future__ import annotations

import json
import time

import pytest

from services.common.toolhost import exact_json
from services.orchestrator.turns.trajectory.covering import Covering
from services.orchestrator.turns.trajectory.markdown import closed, one_line

KEY = 'pa"ss/wörd-1234567890'
MARK = "[redacted]"


def covered(text: str, *values: str) -> str:
    return Covering(values or (KEY,), MARK).text(text)


@pytest.mark.spec("TRN-314")
@pytest.mark.parametrize(
    "form",
    [
        KEY,
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(KEY)[1:-1])[1:-1],
        KEY.replace('"', '\\"').replace("/", "\\/"),
    ],
)
def test_a_known_value_is_covered_however_it_is_escaped(form: str) -> None:
    assert covered(f"before {form} after {form}") == f"before {MARK} after {MARK}"


@pytest.mark.spec("TRN-314")
@pytest.mark.parametrize("kept", range(6, len(KEY)))
@pytest.mark.parametrize("end", ["", "…", "\n…[9 characters left out]"])
def test_the_part_of_a_value_that_a_cut_left_is_covered(kept: int, end: str) -> None:
    assert covered(f"x={KEY[:kept]}{end}") == f"x={MARK}{end}"
    begin = f"head…{chr(10) if end else ''}"
    assert covered(f"{begin}{KEY[-kept:]} and more") == f"{begin}{MARK} and more"


def test_a_word_that_only_begins_like_a_value_stays() -> None:
    assert covered("a password and a passphrase", "password123!") == "a password and a passphrase"
    assert covered("short abc1234 stays", "abc1234") == "short abc1234 stays"


@pytest.mark.spec("TRN-314")
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("key sk-or-v1-0123456789abcdef end", "key [redacted] end"),
        ("Authorization: Bearer abcdef.123456~x", "Authorization: Bearer [redacted]"),
        ("t eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl.", "t [redacted]."),
        ("cut eyJhbGciOiJIUzI1NiJ9.eyJzdW…", "cut [redacted]…"),
        ("the task-list-of-things and disk-space-left", "the task-list-of-things and disk-space-left"),
    ],
)
def test_what_has_the_shape_of_a_key_is_covered(text: str, kept: str) -> None:
    assert Covering([], MARK).text(text) == kept


def test_a_tree_is_covered_in_keys_values_and_numbers_and_keeps_other_digits() -> None:
    tree = exact_json.loads('{"12345678": ["x 12345678", 12345678, 1.10, true, null, 1234567]}')
    assert exact_json.dumps(Covering(["12345678"], MARK).tree(tree)) == (
        '{"[redacted]":["x [redacted]","[redacted]",1.10,true,null,1234567]}'
    )


def test_a_hostile_text_is_not_read_again_and_again() -> None:
    values = [f"secret-{n:04}-" + "ab" * 40 for n in range(40)]
    text = "secret…" * 20_000 + "ababab" * 20_000
    began = time.process_time()
    assert covered(text, *values).count(MARK) == 20_001
    assert time.process_time() - began < 30


@pytest.mark.spec("TRN-316")
@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("```python\nx = 1", "\n```"),
        ("~~~~\nx\n~~~", "\n~~~~"),
        ("```\nx\n```", ""),
        ("```\n~~~\n```", ""),
        ("``` in `line`", ""),
        ("a\n   ````\n```", "\n````"),
        ("no code", ""),
    ],
)
def test_a_code_block_left_open_is_closed(text: str, end: str) -> None:
    assert closed(text) == text + end


@pytest.mark.spec("TRN-316")
def test_a_title_stays_on_one_line() -> None:
    assert one_line("a\n# b\r\n\u2028c") == "a # b c"

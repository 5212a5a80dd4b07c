"""Output under the ceiling: what survives, and that the marks tell the truth."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.ceiling import limit
from services.common.ceiling.cut import cut_head, cut_head_and_tail
from services.common.ceiling.structure import shorten_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=60,
)
ROOTS = st.lists(JSON) | st.dictionaries(st.text(max_size=20), JSON)


class Number(str):
    """A number as it was written."""


def tokens(text: str) -> Any:
    return json.loads(
        text, parse_int=Number, parse_float=Number, object_pairs_hook=lambda pairs: ("obj", pairs)
    )


def is_shortened(short: Any, whole: Any) -> bool:
    """Whether `short` is `whole` with array ends and string middles left out, and nothing else."""
    if isinstance(whole, tuple):
        return (
            isinstance(short, tuple)
            and [key for key, _ in short[1]] == [key for key, _ in whole[1]]
            and all(is_shortened(a, b) for (_, a), (_, b) in zip(short[1], whole[1], strict=True))
        )
    if isinstance(whole, list):
        if not isinstance(short, list):
            return False
        if len(short) == len(whole) and all(is_shortened(a, b) for a, b in zip(short, whole, strict=True)):
            return True
        kept = short[:-1]
        dropped = len(whole) - len(kept)
        return (
            dropped > 0
            and f"{dropped} more elements left out" in short[-1]
            and all(is_shortened(a, b) for a, b in zip(kept, whole, strict=False))
        )
    if isinstance(whole, Number) or not isinstance(whole, str):
        return type(short) is type(whole) and short == whole
    if short == whole:
        return True
    hit = re.fullmatch(r"(.*)…\[(\d+) characters left out\]…(.*)", short, re.S)
    if hit is None:
        return False
    head, count, tail = hit[1], int(hit[2]), hit[3]
    return whole.startswith(head) and whole.endswith(tail) and len(head) + count + len(tail) == len(whole)


@pytest.mark.spec("TLS-096", "TLS-097", "TLS-098", "TLS-099", "TLS-100", "TLS-101", "TLS-093")
@settings(max_examples=150, deadline=None)
@given(ROOTS, st.integers(min_value=20, max_value=3000), st.booleans())
def test_shortened_json_parses_fits_and_keeps_keys_and_numbers(value, ceiling, indented):
    text = json.dumps(value, ensure_ascii=False, indent=2 if indented else None)
    shortened = shorten_json(text, ceiling, "en")
    if shortened is None:
        return
    assert len(shortened) <= ceiling
    assert is_shortened(tokens(shortened), tokens(text))


@pytest.mark.spec("TLS-099", "TLS-100")
def test_numbers_keep_their_digits_and_repeated_keys_stay():
    rows = ",".join('{"p":1.10,"p":1E400,"id":12345678901234567890.5,"ok":null}' for _ in range(500))
    shortened = shorten_json(f"[{rows}]", 600, "en")
    assert shortened is not None
    assert shortened.startswith('[{"p":1.10,"p":1E400,"id":12345678901234567890.5,"ok":null}')
    assert len(json.loads(shortened)) > 5


@pytest.mark.spec("TLS-097", "TLS-101")
def test_all_top_level_keys_stay_and_the_room_is_used():
    text = json.dumps({"log": "x" * 90_000, "rows": list(range(9000)), "total": 9000})
    limited = limit(text, 8000, "en")
    assert limited.how == "structure"
    assert list(json.loads(limited.text)) == ["log", "rows", "total"]
    assert 7000 < len(limited.text) <= 8000
    assert limited.original_chars == len(text)


@pytest.mark.spec("TLS-121")
def test_json_is_held_lower_unless_the_profile_says_otherwise():
    text = json.dumps(list(range(9000)))
    assert len(limit(text, 8000, "en", structure_ceiling=6000).text) <= 6000
    assert len(limit(text, 8000, "en").text) > 7000


@pytest.mark.spec("TLS-103", "TLS-113")
def test_json_that_cannot_be_held_and_errors_are_cut():
    keys = json.dumps({f"key{n}": n for n in range(5000)})
    assert limit(keys, 500, "en").how == "cut"
    assert limit(json.dumps(["x" * 900]), 500, "en", is_error=True).how == "cut"


@pytest.mark.spec("TLS-092")
@pytest.mark.parametrize("text", ["", "x" * 100, '{"a":\n 1.10}'])
def test_what_fits_is_untouched(text):
    assert limit(text, 100, "en") == limit(text, 101, "vi")
    assert limit(text, 100, "en").text == text


@pytest.mark.spec("TLS-112", "TLS-094", "TLS-114", "TLS-093")
@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1, max_size=400), st.integers(min_value=1, max_value=300))
def test_a_cut_keeps_the_opening_and_counts_exactly(text, ceiling):
    cut = cut_head(text, ceiling, "en")
    assert len(cut) <= ceiling
    hit = re.fullmatch(r"(.*)\n…\[(\d+) characters left out\]", cut, re.S)
    if len(text) <= ceiling:
        assert cut == text
    elif hit:
        assert text.startswith(hit[1])
        assert len(hit[1]) + int(hit[2]) == len(text)
    else:
        assert "…[999 characters left out]".startswith(cut[:2])


@pytest.mark.spec("PIP-141", "PIP-081")
def test_a_command_keeps_fifty_lines_of_each_end():
    lines = [f"line {n}" for n in range(5000)]
    cut = cut_head_and_tail("\n".join([*lines, "[exit code 1]"]), 8000, "en").split("\n")
    assert cut[:50] == lines[:50]
    assert "4900 lines left out" in cut[50]
    assert cut[51:101] == lines[-50:]
    assert cut[101:] == ["[exit code 1]"]


@pytest.mark.spec("PIP-141")
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_command_that_only_prints_has_no_line_of_status(end):
    lines = [f"line {n}" for n in range(5000)]
    text = "\n".join(lines) + end
    cut = cut_head_and_tail(text, 8000, "en", status_line=False)
    assert cut.endswith(f"{lines[-1]}{end}")
    kept = cut.rstrip("\n").split("\n")
    assert kept[:50] + kept[51:] == lines[:50] + lines[-50:]
    hit = re.search(r"(\d+) lines left out, (\d+) characters", kept[50])
    assert hit
    assert int(hit[1]) == 4900
    # The breaks around the mark stand in the text with one of the two parts.
    assert len(text) - int(hit[2]) == len(cut) - len(kept[50])


@pytest.mark.spec("FLD-069", "PIP-052")
@pytest.mark.parametrize("length", [9, 8001, 20_000])
def test_one_endless_line_of_a_command_keeps_both_ends(length):
    text = "a" * length + "b" * length
    cut = cut_head_and_tail(text, 800, "en", status_line=False)
    assert len(cut) <= 800
    assert cut.startswith("aaaa")
    assert cut.endswith("bbbb")


@pytest.mark.spec("FLD-069", "PIP-052")
@pytest.mark.parametrize("width", [1, 7, 300, 5000])
def test_every_length_around_the_limit_keeps_the_status_line_and_the_count(width):
    ceiling = 2000
    for length in range(ceiling - 1000, ceiling + 1001, 7):
        body = "".join("\n" if n % (width + 1) == width else "abcdefghij"[n % 10] for n in range(length))
        text = f"{body}\n[exit code 3]"
        cut = cut_head_and_tail(text, ceiling, "en")
        assert len(cut) <= ceiling
        assert cut.endswith("[exit code 3]")
        if len(text) <= ceiling:
            assert cut == text
            continue
        hit = re.search(r"\n?…\[(\d+) lines left out, (\d+) characters\]…", cut)
        assert hit
        # The breaks around the mark may be the text's own or the mark's.
        head, tail = cut[: hit.start()], cut[hit.end() :].removeprefix("\n")
        assert text.startswith(head)
        assert text.endswith(tail)
        missing = len(text) - len(head) - len(tail)
        assert missing - 2 <= int(hit[2]) <= missing


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab\n", max_size=800), st.integers(min_value=1, max_value=400))
def test_head_and_tail_always_holds_the_ceiling(text, ceiling):
    assert len(cut_head_and_tail(text, ceiling, "vi")) <= ceiling


def test_hostile_json_is_cut_and_does_not_raise():
    deep = "[" * 100_000 + "]" * 100_000
    assert limit(deep, 500, "en").how == "cut"
    assert limit('{"a": NaN, "b": "' + "x" * 900 + '"}', 500, "en").how == "cut"
    surrogate = json.dumps(["\ud800" * 900])
    assert len(limit(surrogate, 500, "en").text) <= 500

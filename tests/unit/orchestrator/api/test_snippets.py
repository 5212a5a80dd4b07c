"""The part of a message that a search shows."""

from __future__ import annotations

import unicodedata

import pytest

from services.orchestrator.api.snippets import SNIPPET_CHARS, snippet

LONG = "Trước khi đi, nhớ khóa cửa. " * 20


@pytest.mark.spec("TRN-340")
def test_a_message_that_fits_is_shown_whole() -> None:
    whole = f"  ĐẶT HÀNG {'x' * (SNIPPET_CHARS - 11)}"
    assert len(whole) == SNIPPET_CHARS
    assert snippet(whole, ["hang"]) == whole


@pytest.mark.spec("TRN-340")
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_only_an_end_that_was_cut_is_marked(form: str) -> None:
    told = unicodedata.normalize(form, f"Đặt hàng hôm nay. {LONG}")
    first = snippet(told, ["dat", "hang"])
    assert first == f"{told[: len(first) - 1]}…"
    told = unicodedata.normalize(form, f"{LONG}Hôm nay đặt hàng")
    last = snippet(told, ["DAT"])
    assert last.startswith("…")
    assert told.endswith(last[1:])
    assert unicodedata.normalize("NFC", last).endswith("đặt hàng")
    middle = snippet(unicodedata.normalize(form, f"{LONG}Đặt hàng rồi. {LONG}"), ["hang"])
    assert (middle[0], middle[-1]) == ("…", "…")
    assert "Đặt hàng" in unicodedata.normalize("NFC", middle)


@pytest.mark.spec("TRN-340")
def test_the_place_is_right_far_inside_a_long_message() -> None:
    told = f"{unicodedata.normalize('NFD', LONG) * 40}kim cương{LONG}"
    assert "kim cương" in snippet(told, ["kim", "cuong"])


def test_a_mark_is_never_parted_from_its_letter() -> None:
    marked = "e\u0301" * 300
    told = f"{marked}needle{marked}"
    shown = snippet(told, ["needle"])
    assert not unicodedata.combining(shown[1])
    assert shown[-2] == "\u0301"

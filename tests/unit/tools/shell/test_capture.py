"""Keeping what a command prints within bounds."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.tools.shell.capture import HEAD_BYTES, TAIL_CHARS, OutputCapture


def captured(*pieces: bytes) -> OutputCapture:
    capture = OutputCapture()
    for piece in pieces:
        capture.feed(piece)
    return capture


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_text_does_not_depend_on_how_the_bytes_arrive(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(edges)]
    expected = data.decode("utf-8", "replace").replace("\0", "\ufffd")
    assert captured(*pieces).finish().head == expected


@pytest.mark.spec("TLS-256")
def test_bytes_that_are_no_text_are_replaced_and_colours_are_kept() -> None:
    assert captured(b"\x1b[31mred\x1b[0m \xff\xfe\0").finish().head == "\x1b[31mred\x1b[0m \ufffd\ufffd\ufffd"


@pytest.mark.spec("TLS-255", "FLD-069")
@pytest.mark.parametrize("extra", [0, 1, TAIL_CHARS - 1, TAIL_CHARS, TAIL_CHARS + 1, 3 * TAIL_CHARS])
def test_the_opening_and_the_end_are_kept_and_the_rest_is_counted(extra: int) -> None:
    whole = b"a" * HEAD_BYTES + b"b" * extra
    output = captured(*(whole[at : at + 700_001] for at in range(0, len(whole), 700_001))).finish()
    assert len(output.head) == HEAD_BYTES
    assert output.tail == "b" * min(extra, TAIL_CHARS)
    assert output.dropped_chars == max(0, extra - TAIL_CHARS)
    assert output.total_chars == HEAD_BYTES + extra


def test_a_character_across_the_border_of_what_is_kept_is_whole_and_counted_once() -> None:
    output = captured(b"a" * (HEAD_BYTES - 1) + "é".encode() + b"z").finish()
    assert output.head + output.tail == "a" * (HEAD_BYTES - 1) + "éz"
    assert output.total_chars == HEAD_BYTES + 1
    assert output.dropped_chars == 0


def test_the_last_characters_reach_back_into_the_opening() -> None:
    output = captured(b"x" * 5_000 + b"end").finish()
    assert output.last(TAIL_CHARS) == "x" * (TAIL_CHARS - 3) + "end"
    assert output.last(0) == ""


def test_what_was_printed_last_can_be_seen_on_the_way() -> None:
    assert captured(b"one ", b"two ", b"three").latest(9) == "two three"

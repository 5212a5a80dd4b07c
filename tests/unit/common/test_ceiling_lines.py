"""A file read whole that does not fit: the cut says how to read on."""

from __future__ import annotations

import re

import pytest

from services.common.ceiling import limit


@pytest.mark.spec("TLS-432", "TLS-112", "TLS-093", "FLD-069")
@pytest.mark.parametrize("ceiling", [150, 151, 999, 1000, 8000])
@pytest.mark.parametrize("locale", ["en", "vi"])
def test_the_mark_counts_what_is_missing_and_names_the_next_line(ceiling: int, locale: str) -> None:
    lines = [f"{n}: {'ế' * (n % 70)}\n" for n in range(1, 600)]
    text = "".join(lines)
    limited = limit(text, ceiling, locale, file_lines=len(lines))  # type: ignore[arg-type]
    assert limited.how == "cut"
    assert len(limited.text) <= ceiling
    kept, _, mark = limited.text.rpartition("\n")
    kept += "\n"
    assert text.startswith(kept)
    shown = kept.count("\n")
    numbers = [int(number) for number in re.findall(r"\d+", mark)]
    assert numbers == [len(text) - len(kept), 1, shown, len(lines), shown + 1]
    assert kept == "".join(lines[:shown])


def test_a_file_that_fits_has_no_such_line() -> None:
    assert limit("a\nb\n", 8000, "en", file_lines=2).text == "a\nb\n"


def test_a_first_line_that_does_not_fit_is_cut_like_any_text() -> None:
    limited = limit("x" * 8001, 8000, "en", file_lines=1)
    assert len(limited.text) <= 8000
    kept = limited.text.partition("\n")[0]
    assert f"{8001 - len(kept)} characters left out" in limited.text


def test_json_keeps_its_own_way() -> None:
    assert limit("[\n" + "1,\n" * 5000 + "1]", 500, "en", file_lines=5002).how == "structure"

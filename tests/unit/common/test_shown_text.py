"""What a person sees of text that may deceive (FLD-025)."""

from __future__ import annotations

import pytest

from services.common.shown_text import shown

HIDDEN = [
    0x00, 0x01, 0x07, 0x08, 0x0B, 0x0C, 0x0D, 0x1B, 0x7F, 0x80, 0x85, 0x9F, 0xA0, 0xAD,
    0x034F, 0x061C, 0x115F, 0x17B4, 0x180E, 0x2000, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F,
    0x2028, 0x2029, 0x202A, 0x202D, 0x202E, 0x2060, 0x2066, 0x2069, 0x2800, 0x3000, 0x3164,
    0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0xE0001, 0xE0041, 0xE01EF, 0x1D173, 0xF0000,
]  # fmt: skip


@pytest.mark.spec("FLD-025")
@pytest.mark.parametrize("code", HIDDEN)
def test_what_cannot_be_seen_is_spelled_out(code):
    assert shown(f"rm{chr(code)}x", "en") == f"rm[U+{code:04X}]x"


@pytest.mark.spec("FLD-025")
@pytest.mark.parametrize(
    "text",
    [
        "git commit -m 'x'",
        "a\n\tb",
        "Xin chào, báo-cáo.docx nằm ở đây",
        "日本語のファイル",
        "https://example.com/a?b=c",
        "mail an user@example.com",
        "    four blanks",
    ],
)
def test_honest_text_is_unchanged(text):
    assert shown(text, "en") == text


@pytest.mark.spec("FLD-025")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("curl https://аpple.com/x", "curl https://xn--pple-43d.com [letters of different scripts]/x"),
        ("https://аррӏе.com", "https://xn--80ak6aa92e.com"),
        ("https://münchen.de/", "https://xn--mnchen-3ya.de/"),
        ("to bob@pаypal.com now", "to bob@xn--pypal-4ve.com [letters of different scripts] now"),
        ("open gооgle.com", "open xn--ggle-55da.com [letters of different scripts]"),
        ("x" + " " * 5 + "y", "x[5 blanks]y"),
        ("x" + " " * 500 + "rm -rf /", "x[500 blanks]rm -rf /"),
    ],
)
def test_hosts_and_blanks_show_what_they_are(text, expected):
    assert shown(text, "en") == expected


def test_a_host_no_resolver_takes_does_not_raise():
    assert "xn--" not in shown("https://" + "а" * 300 + ".com", "vi")

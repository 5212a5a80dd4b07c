"""Every text of this area is there in both languages, with the same placeholders."""

from __future__ import annotations

import string

import pytest

from services.common.wording import load


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.spec("PIP-005", "TLS-015")
@pytest.mark.parametrize("prefix", ["calls.", "hosts.", "agents.", "prompt.", "tool."])
def test_both_languages_have_the_same_texts(prefix):
    words = load("orchestrator")
    keys = words.keys("en", prefix)
    assert keys
    assert set(keys) == set(words.keys("vi", prefix))
    for key in keys:
        english, vietnamese = words._texts["en"][key], words._texts["vi"][key]
        assert placeholders(english) == placeholders(vietnamese), key
        assert english.strip()
        if len(english) > 30:
            assert english != vietnamese, key

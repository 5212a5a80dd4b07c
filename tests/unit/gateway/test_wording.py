"""Sentences of the gateway and of access exist in both languages, for every key the code names."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from services.common.wording import load

SERVICES = Path(__file__).parents[3] / "services"


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.spec("GTW-039")
@pytest.mark.parametrize(
    ("service", "prefix"),
    [("gateway", ""), ("orchestrator", "error.access."), ("orchestrator", "command.set_password.")],
)
def test_both_languages_have_the_same_texts_and_placeholders(service: str, prefix: str) -> None:
    words = load(service)
    english, vietnamese = words.keys("en", prefix), words.keys("vi", prefix)
    assert english
    assert sorted(english) == sorted(vietnamese)
    for key in english:
        there, here = words.text("vi", key, **_any(key, service)), words.text("en", key, **_any(key, service))
        assert there != here
        raw_en, raw_vi = (words._texts[locale][key] for locale in ("en", "vi"))  # type: ignore[index]
        assert placeholders(raw_en) == placeholders(raw_vi), key


def _any(key: str, service: str) -> dict[str, str]:
    return dict.fromkeys(placeholders(load(service)._texts["en"][key]), "?")


@pytest.mark.parametrize(
    ("service", "folder"), [("gateway", "gateway"), ("orchestrator", "orchestrator/access")]
)
def test_every_key_named_in_the_code_has_a_text(service: str, folder: str) -> None:
    words = load("common", service)
    named = {
        key
        for path in (SERVICES / folder).rglob("*.py")
        for key in re.findall(r'"((?:error|log|page|command)\.[a-z0-9_.]+)"', path.read_text("utf-8"))
    }
    assert len(named) > 10
    assert [key for key in sorted(named) if not words.has(key)] == []
    if service == "gateway":
        kinds = ("text", "bool", "whole", "number", "list", "object")
        assert all(words.has(f"error.body.wrong.{kind}") for kind in kinds)
        unused = {key for key in words.keys("en", "error.") if not _common(key)} - named
        assert {key for key in unused if not key.startswith("error.body.wrong.")} == set()


def _common(key: str) -> bool:
    return load("common").has(key)

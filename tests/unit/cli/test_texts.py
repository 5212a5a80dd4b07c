"""The words of the command line, the same in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.cli.main import COMMANDS
from services.common.wording import load

SOURCES = Path(__file__).parents[3] / "services"


@pytest.mark.parametrize("service", ["common", "cli"])
def test_both_languages_have_the_same_keys_and_placeholders(service: str) -> None:
    catalogue = load(service)
    english, vietnamese = catalogue.keys("en"), catalogue.keys("vi")
    assert sorted(english) == sorted(vietnamese)
    for key in english:
        names = [
            sorted(set(re.findall(r"(?<!\{)\{(\w+)\}", catalogue._texts[locale][key])))
            for locale in ("en", "vi")
        ]
        assert names[0] == names[1], key


def test_every_command_has_a_summary() -> None:
    for name in COMMANDS:
        assert load("cli").has(f"cli.{name}.summary")


def test_every_key_that_the_code_names_exists() -> None:
    catalogue = load("common", "cli")
    for path in (*SOURCES.glob("cli/**/*.py"), *SOURCES.glob("common/**/*.py")):
        for key in re.findall(r'"((?:error|cli)\.[a-z_]+(?:\.[a-z_]+)+)"', path.read_text("utf-8")):
            assert catalogue.has(key), f"{path}: {key}"
        for key in re.findall(r'\b(?:good|note|bad)\("([a-z_]+)"', path.read_text("utf-8")):
            assert catalogue.has(f"doctor.{key}"), f"{path}: {key}"

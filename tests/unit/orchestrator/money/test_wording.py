"""The sentences about money, in both languages."""

from __future__ import annotations

import string

import pytest

from services.common.wording import Locale, load
from services.orchestrator.money.budgets import Standing
from services.orchestrator.money.question import arguments, in_words
from services.orchestrator.store.spending import Budget

WORDS = load("orchestrator")


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_texts_and_placeholders() -> None:
    english, vietnamese = WORDS.keys("en", "money."), WORDS.keys("vi", "money.")
    assert sorted(english) == sorted(vietnamese)
    for key in english:
        assert placeholders(WORDS.text("en", key)) == placeholders(WORDS.text("vi", key)), key


@pytest.mark.parametrize("locale", ["en", "vi"])
def test_every_budget_can_be_named(locale: Locale) -> None:
    standings = [
        Standing(Budget(scope, name, period, 2.0), 1.999, 0, 3)
        for scope, name in (("crew", ""), ("agent", "ann"), ("schedule", "ann/news"))
        for period in ("day", "month")
    ]
    text = in_words(WORDS, locale, standings)
    assert text.count("$2.00") == 12
    assert text.count("ann/news") == 2


@pytest.mark.spec("FLD-016")
def test_unpriced_calls_are_told_beside_what_is_known() -> None:
    standing = Standing(Budget("crew", "", "day", 0.05), 0.0512, 0, 2)
    assert in_words(WORDS, "en", [standing]) == (
        "the crew's budget of $0.0500 a day, of which $0.0512 is spent "
        "(besides 2 calls whose price is unknown)"
    )
    assert arguments([standing]) == (
        '{"budgets":[{"scope":"crew","id":"","period":"day","limit_usd":0.05,"spent_usd":0.0512}]}'
    )

"""Telling the owner that a budget is nearly spent (FLD-016)."""

from __future__ import annotations

import structlog

from services.common.wording import Catalogue, Locale
from services.orchestrator.money.budgets import Standing
from services.orchestrator.money.question import in_words
from services.orchestrator.turns.activity import Activity

log = structlog.get_logger(__name__)


class BudgetNotices:
    """Shows notices to whoever watches the crew and writes them to the log.

    Channels that reach an owner who is away are told from here as well when there are some.

    Args:
        activity: The live view of the web page.
        catalogue: Sentences.
        locale: Of everything the crew says.
    """

    def __init__(self, activity: Activity, catalogue: Catalogue, locale: Locale) -> None:
        self._activity = activity
        self._catalogue = catalogue
        self._locale: Locale = locale

    def nearly_spent(self, standing: Standing) -> None:
        """Tell it; who calls sees to it that it is once in a day or month, over all processes."""
        budget = in_words(self._catalogue, self._locale, [standing])
        text = self._catalogue.text(self._locale, "money.nearly_spent", budget=budget)
        log.warning("budget_nearly_spent", text=text)
        self._activity.notice(text)

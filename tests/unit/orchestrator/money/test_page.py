"""The page for owners: its example is a configuration that the crew takes."""

from __future__ import annotations

import re
from pathlib import Path

from services.common.settings.loading import load_config
from services.orchestrator.money.budgets import budgets_of

PAGE = Path(__file__).parents[4] / "docs" / "money.md"


def test_the_example_is_taken_and_says_what_the_page_says(tmp_path: Path) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (tmp_path / "config.yaml").write_text(example)
    values = load_config(tmp_path / "config.yaml", {}).values
    budgets = {(b.scope, b.id, b.period): b.limit_usd for b in budgets_of(values.budgets)}
    assert budgets == {
        ("crew", "", "day"): 5,
        ("crew", "", "month"): 60,
        ("agent", "researcher", "day"): 1.5,
        ("schedule", "default/morning", "month"): 4,
    }
    assert values.prices["openai:gpt-x"].max_output_tokens == 16000

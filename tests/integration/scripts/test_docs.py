"""The example of docs/scripts.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from tests.integration.scripts.test_with_the_service import person

PAGE = Path(__file__).parents[3] / "docs" / "scripts.md"


async def test_the_example_of_the_page_runs(database, model_server):
    found = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    async with person(database, model_server) as someone:
        for name, hours in (("monday", 7), ("wednesday", 5)):
            (someone.crew.workspace / f"{name}.md").write_text(f"# {name}\nhours: {hours}\n")
        ran = await someone.run(found[1])
        kept = await someone.run("print(load('hours'))")
    assert ran.ok
    assert ran.lines[0].startswith("tuesday.md: ")
    assert ran.lines[1] == "12 hours, 12 more than last time"
    assert kept.text == "12\n"

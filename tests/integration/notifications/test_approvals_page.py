"""The owner's page about approvals: its examples work as they stand."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.orchestrator.agents.file import read_agent_file
from tests.fixtures.crew import Crew
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import Gateway, gateway_before

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
async def before(crew: Crew) -> AsyncIterator[Gateway]:
    """A gateway before the crew."""
    address = crew.environ["MY_AGENT_ORCHESTRATOR_LISTEN"]
    async with gateway_before(address, crew.folder / "secrets", FakeOrchestrator()) as gateway:
        yield gateway


def blocks(language: str) -> list[str]:
    """The page's examples in a language."""
    text = (DOCS / "approvals.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def test_the_profile_of_the_page_is_one(tmp_path: Path) -> None:
    (example,) = blocks("yaml")
    (tmp_path / "agent.yaml").write_text(example)
    profile, _ = read_agent_file(tmp_path / "agent.yaml")
    first, second = profile.review
    assert (first.tools, first.sees, first.on_deny) == (("shell_run",), "call", "deny")
    assert (second.sees, second.on_deny) == ("conversation", "ask")


async def test_the_commands_of_the_page_are_answered(before: Gateway) -> None:
    commands = "".join(blocks("sh")).replace("\\\n", " ").splitlines()
    assert len(commands) == 3
    for command in commands:
        words = shlex.split(command)
        path = next(word for word in words if word.startswith("http")).removeprefix("http://localhost:8765")
        body = words[words.index("-d") + 1] if "-d" in words else None
        if body is None:
            answer = await before.http.get(path)
        else:
            answer = await before.http.post(path, json=json.loads(body))
        assert answer.status_code == 200, (command, answer.text)


@pytest.mark.spec("PIP-121")
def test_the_page_about_tools_asks_three_questions_before_a_new_one() -> None:
    text = (DOCS / "tools.md").read_text("utf-8")
    section = re.search(r"^## A new ability: a tool or a skill\?\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert section is not None
    questions = section[1].split("Three times yes", 1)[0]
    assert questions.count("?") == 3
    for asked in ("nested", "change seldom", "through the shell"):
        assert asked in questions
    assert "one\ntool that tells the kind from its input" in section[1]

"""The owner's pages say what the program does."""

from __future__ import annotations

import re
from pathlib import Path

from services.cli.main import COMMANDS
from services.common.settings import CrewConfig, GatewaySettings, OrchestratorSettings, ToolsSettings
from services.common.settings.config import FromEnvironment

ROOT = Path(__file__).parents[3]


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_page_of_settings_lists_every_key_and_variable_with_its_default() -> None:
    text = page("docs/configuration.md")
    for key, info in CrewConfig.model_fields.items():
        row = next((line for line in text.splitlines() if line.startswith(f"| `{key}` |")), "")
        assert row, f"{key} is not on the page"
        for mark in info.metadata:
            if isinstance(mark, FromEnvironment):
                assert f"`{mark.name}`" in row
        if isinstance(info.default, int | float | str) and info.default != "" and key != "umask":
            assert f"`{str(info.default).lower()}`" in row
    for model in (GatewaySettings, OrchestratorSettings, ToolsSettings):
        for name in model.model_fields:
            if name not in CrewConfig.model_fields and name not in {"config", "variables"}:
                assert f"`MY_AGENT_{name.upper()}`" in text, name


def test_the_page_of_settings_lists_nothing_else() -> None:
    known = set(CrewConfig.model_fields)
    rows = re.findall(r"^\| `([a-z_]+)` \|", page("docs/configuration.md"), re.MULTILINE)
    assert set(rows) == known


def test_the_pages_name_commands_and_pages_that_exist() -> None:
    for name in ("README.md", "docs/operation.md", "docs/configuration.md"):
        text = page(name)
        for command in re.findall(r"\./crew ([a-z-]+)", text):
            assert command in COMMANDS, f"{name}: {command}"
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (ROOT / name).parent.joinpath(link).exists(), f"{name}: {link}"

"""A lint over every tool of the service: what a model is told is complete, in both languages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from string import Formatter
from typing import Any, get_args

import jsonschema_rs
import pytest

from services.common.toolhost.contract import Tool, ToolKind
from services.common.wording import Locale, load
from services.tools.app import offered_tools
from services.tools.shell.sandbox.shell_sandbox import ShellSandbox
from services.tools.tool_texts import REQUIRED_PARTS, ToolTexts
from services.tools.workspace.disk.path_queue import PathQueue
from services.tools.workspace.seen import SeenFiles

LOCALES: tuple[Locale, ...] = get_args(Locale)
RESERVED = {"names", "search", "describe", "batch"}
# Parameters whose description needs no example value: their meaning is their name's.
EXAMPLE = re.compile(r"such as|for example|chẳng hạn|ví dụ|default|mặc định")
TRIVIAL = {"overwrite", "replace_all", "files", "edits"}


def tools() -> list[Tool]:
    seen = SeenFiles(Path("/nonexistent/seen.sqlite"))
    return list(offered_tools(seen, PathQueue(), ShellSandbox()))


TOOLS = tools()
each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
each_locale = pytest.mark.parametrize("locale", LOCALES)


def parameters(schema: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every named parameter of a schema, nested ones included."""
    found = []
    for name, value in schema.get("properties", {}).items():
        found.append((f"{path}{name}", value))
        found += parameters(value, f"{path}{name}.")
    if "items" in schema:
        found += parameters(schema["items"], f"{path}[].")
    return found


@each_tool
@each_locale
@pytest.mark.spec("PIP-006", "TLS-015", "PIP-005")
def test_a_description_has_all_its_parts(tool: Tool, locale: Locale) -> None:
    texts, description = ToolTexts(tool.name), tool.spec(locale).description
    for part in REQUIRED_PARTS:
        assert texts.of(locale, f"description.{part}") in description, part
    if texts.has("description.prefer"):
        assert re.search(r"\w+_\w+", texts.of(locale, "description.prefer")), "names the cheaper tool"
    if tool.spec(locale).effect == "read" and tool.spec(locale).kind == "search":
        assert texts.has("description.time")


@each_tool
@each_locale
@pytest.mark.spec("PIP-006", "TLS-015")
def test_every_parameter_is_described_with_an_example(tool: Tool, locale: Locale) -> None:
    for path, schema in parameters(tool.spec(locale).parameters):
        name = path.rpartition(".")[2]
        assert schema.get("description", "").strip(), path
        if name not in TRIVIAL:
            assert re.search(
                r"such as|for example|chẳng hạn|ví dụ|default|mặc định", schema["description"]
            ), path


@each_tool
@each_locale
@pytest.mark.spec("PIP-007")
def test_examples_fit_the_tools_own_schema(tool: Tool, locale: Locale) -> None:
    spec = tool.spec(locale)
    validator = jsonschema_rs.Draft202012Validator(dict(spec.parameters))
    examples = [json.loads(line) for line in spec.description.splitlines() if line.startswith("{")]
    nested = any("." in path for path, _ in parameters(spec.parameters))
    assert len(examples) <= 5
    assert examples or not nested
    for example in examples:
        assert validator.is_valid(example), example


@each_tool
@pytest.mark.spec("PIP-002", "PIP-003", "PIP-116", "PIP-120", "TLS-013", "TLS-014", "TLS-011", "SCR-041")
def test_flags_and_product_texts_hold_together(tool: Tool) -> None:
    for locale in LOCALES:
        spec = tool.spec(locale)
        assert spec.name == tool.name
        assert spec.name not in RESERVED
        assert spec.parameters["type"] == "object"
        assert spec.label
        assert spec.card
        assert spec.prompt_snippet
        assert all(spec.name in guideline for guideline in spec.guidelines)
        assert spec.kind in get_args(ToolKind)
        if spec.replay_safe:
            assert spec.effect == "read"
        assert spec.requires_approval == (spec.effect != "read")
    english, vietnamese = (tool.spec(locale) for locale in LOCALES)
    assert english.parameters.keys() == vietnamese.parameters.keys()
    assert [path for path, _ in parameters(english.parameters)] == [
        path for path, _ in parameters(vietnamese.parameters)
    ]
    assert english.description != vietnamese.description


@pytest.mark.spec("TLS-005", "TLS-070", "TLS-009")
def test_the_flags_are_those_of_the_catalogue() -> None:
    flags = {
        tool.name: (
            tool.spec("en").requires_approval,
            tool.spec("en").parallel,
            tool.spec("en").replay_safe,
            tool.spec("en").effect,
        )
        for tool in TOOLS
        if tool.name.startswith("workspace_")
    }
    assert flags == {
        "workspace_list": (False, True, True, "read"),
        "workspace_read": (False, True, True, "read"),
        "workspace_write": (True, False, False, "replace"),
        "workspace_edit": (True, False, False, "change"),
        "workspace_grep": (False, True, True, "read"),
        "workspace_glob": (False, True, True, "read"),
    }


@pytest.mark.spec("PIP-005")
@pytest.mark.parametrize("service", ["tools", "common"])
def test_both_languages_have_the_same_texts_and_placeholders(service: str) -> None:
    catalogue = load(service)
    english, vietnamese = (set(catalogue.keys(locale)) for locale in LOCALES)
    assert english == vietnamese
    for key in sorted(english):
        if key.endswith(".examples"):
            continue
        fields = [
            sorted(
                {field for _, field, _, _ in Formatter().parse(catalogue._texts[locale][key]) if field}
                if "{" in catalogue._texts[locale][key]
                else set()
            )
            for locale in LOCALES
        ]
        assert fields[0] == fields[1], key

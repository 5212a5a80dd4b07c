"""`tools.search` and `tools.describe` (SCR-059 to 067)."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.toolhost.contract import ToolSpec
from services.orchestrator.calls.toolbox import HeldTool, Toolbox
from services.orchestrator.scripts.lookups import describe, search


def spec(name: str, description: str, parameters: Any = None) -> ToolSpec:
    return ToolSpec(name, description, parameters or {"type": "object"}, name, "read", "read")


def toolbox(*specs: ToolSpec) -> Toolbox:
    return Toolbox(tuple(HeldTool(each, None) for each in specs))  # type: ignore[arg-type]


TOOLS = toolbox(
    spec("workspace_read", "Read one file of the workspace.\nWith its lines."),
    spec("web_search", "Find pages on the web by words. " + "Long. " * 60),
    spec("memory_search", "Find facts told earlier, not pages."),
    spec("hoa_don", "Tìm hoá đơn của tháng."),
)


@pytest.mark.spec("SCR-059")
def test_the_best_match_comes_first_with_one_line_of_its_description():
    found = search(TOOLS, "search the web", 5)
    assert [set(each) for each in found] == [{"name", "description"}] * len(found)
    assert [each["name"] for each in found] == ["web_search", "memory_search", "workspace_read"][: len(found)]
    assert found[0]["name"] == "web_search"
    assert len(found[0]["description"]) == 200
    assert "\n" not in found[0]["description"]
    assert (
        search(TOOLS, "read file", 5)[0]["description"] == "Read one file of the workspace. With its lines."
    )
    assert search(TOOLS, "hoá đơn", 5)[0]["name"] == "hoa_don"


@pytest.mark.spec("SCR-059")
def test_no_match_gives_nothing_and_the_limit_holds():
    assert search(TOOLS, "zebra", 5) == []
    assert search(TOOLS, "", 5) == []
    assert len(search(TOOLS, "find pages", 1)) == 1
    assert search(toolbox(), "find", 5) == []


NESTED = {
    "type": "object",
    "properties": {
        "filter": {
            "type": "object",
            "description": "Which ones.",
            "properties": {"owner": {"type": "string", "description": "Whose. Not shown."}},
            "required": ["owner"],
        },
        "pages": {
            "type": "array",
            "items": {"type": "object", "properties": {"title": {"type": "string"}}},
        },
    },
    "required": ["pages"],
}


@pytest.mark.spec("SCR-061", "SCR-062")
@pytest.mark.parametrize(("locale", "required"), [("en", "required"), ("vi", "bắt buộc")])
def test_a_description_has_the_call_line_the_text_and_every_parameter_by_its_path(locale, required):
    lines = describe(spec("pages_find", "Find pages.", NESTED), locale).splitlines()
    assert lines == [
        "pages_find(filter?: object, pages: array)",
        "Find pages.",
        "- filter (object): Which ones.",
        f"- filter.owner (string, {required}): Whose.",
        f"- pages (array, {required})",
        "- pages[].title (string)",
    ]


@pytest.mark.spec("SCR-063")
def test_a_long_description_is_cut_at_whole_lines():
    text = "\n".join(f"Line {n} of the description." for n in range(100))
    cut = describe(spec("long", text), "en")
    assert len(cut) <= 2_000
    *lines, mark = cut.splitlines()
    assert mark.startswith("[cut here")
    assert lines[-1].endswith("of the description.")
    short = describe(spec("short", "x" * 1_990), "en")
    assert not short.endswith("]")

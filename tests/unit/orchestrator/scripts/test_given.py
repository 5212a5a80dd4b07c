"""Who is given `tool_script`, and what its description says (SCR-002 to 030)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.common.settings.config import CrewConfig
from services.common.start import StartError
from services.orchestrator.agents.agents import Agents
from services.orchestrator.calls.registry import OfferedHost, ToolRegistry
from services.orchestrator.calls.toolbox import HeldTool
from services.orchestrator.hosts.local import LocalToolHost
from services.orchestrator.hosts.own import AskUser, ProgressNote
from services.orchestrator.scripts.description import tool_line
from services.orchestrator.scripts.reach import reach
from services.orchestrator.scripts.tool_script import ToolScript
from tests.unit.orchestrator.calls.parts import Scripted, agent_in

PATH = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "offset": {"type": "integer"},
        "limit": {"type": "integer"},
    },
    "required": ["path"],
}


def reading(name: str, **flags: Any) -> Scripted:
    return Scripted(name, parameters=flags.pop("parameters", PATH), replay_safe=True, **flags)


def writing(name: str, **flags: Any) -> Scripted:
    return Scripted(name, effect="change", requires_approval=True, **flags)


READ, WRITE = reading("workspace_read"), writing("workspace_write")


@pytest.fixture
def agent(tmp_path):
    return agent_in(tmp_path)


async def toolbox(agent, *tools: Any, locale: str = "en"):
    # Scripts are run nowhere here: describing needs no service.
    script = ToolScript(scripts=None)  # type: ignore[arg-type]
    host = LocalToolHost("crew", [*tools, AskUser(), ProgressNote(), script])
    registry = ToolRegistry([OfferedHost(host)], derived={ToolScript.name: ToolScript.derived})
    return await registry.toolbox(agent, locale)


async def described(agent, *tools: Any, locale: str = "en") -> str:
    found = (await toolbox(agent, *tools, locale=locale)).find("tool_script")
    assert found is not None
    return found.spec.description


@pytest.mark.spec("SCR-002", "SCR-003", "SCR-005", "SCR-006", "AGT-065")
@pytest.mark.parametrize(
    ("tools", "allowed", "script_calls", "given"),
    [
        ([READ], (), "read_only", True),
        ([READ], ("workspace_read",), "read_only", True),
        ([READ], ("tool_script",), "read_only", False),
        ([READ, WRITE], ("workspace_write",), "read_only", False),
        ([READ, WRITE], ("workspace_write",), "gated", True),
        ([READ], (), "none", False),
        ([], (), "read_only", False),
        ([], (), "gated", False),
        ([reading("artifact_read")], (), "read_only", False),
    ],
)
async def test_who_is_given_it(agent, tools, allowed, script_calls, given):
    held = await toolbox(replace(agent, tools=allowed, script_calls=script_calls), *tools)
    assert (held.find("tool_script") is not None) is given


@pytest.mark.spec("SCR-004")
async def test_naming_it_changes_nothing(agent):
    named = await toolbox(replace(agent, tools=("workspace_read", "tool_script")), READ, WRITE)
    unnamed = await toolbox(replace(agent, tools=("workspace_read",)), READ, WRITE)
    assert named.names == unnamed.names


@pytest.mark.spec("SCR-007", "TLS-004", "TRN-135", "SCR-257")
async def test_it_stands_after_the_built_in_tools_before_those_of_servers_and_runs_alone(agent):
    held = await toolbox(agent, READ, reading("mcp__a__b"), WRITE)
    assert held.names == [
        "workspace_read",
        "tool_script",
        "mcp__a__b",
        "workspace_write",
        "ask_user",
        "progress_note",
    ]
    found = held.find("tool_script")
    assert found is not None
    assert not found.spec.parallel


@pytest.mark.spec("SCR-285", "SCR-286", "SCR-096", "TRN-150")
@pytest.mark.parametrize(("script_calls", "again"), [("read_only", True), ("gated", False)])
async def test_a_script_that_only_reads_may_be_called_again(agent, script_calls, again):
    found = (await toolbox(replace(agent, script_calls=script_calls), READ)).find("tool_script")
    assert found is not None
    assert found.spec.replay_safe is again


@pytest.mark.spec("SCR-031", "SCR-034", "SCR-037", "SCR-039", "SCR-362")
def test_what_a_script_may_call(agent):
    tools = [
        READ,
        WRITE,
        reading("asks", requires_approval=True),
        Scripted("not_again", effect="read"),
        reading("read_tool_result"),
        reading("read_transcript"),
        reading("artifact_read"),
        reading("tool_search"),
        writing("delegate"),
        writing("ask_user"),
        writing("schedule_create"),
        writing("shell_start"),
    ]
    held = [held_tool(tool) for tool in tools]
    assert reach(agent, held).callable.names == ["workspace_read"]
    gated = reach(replace(agent, script_calls="gated"), held).callable.names
    assert gated == ["workspace_read", "workspace_write", "asks", "not_again"]


def held_tool(tool: Any) -> HeldTool:
    return HeldTool(tool.spec("en"), LocalToolHost("crew", [tool]))


class TestTheDescription:
    @pytest.mark.spec("SCR-019", "SCR-020")
    async def test_it_names_each_tool_with_its_parameters_and_no_description(self, agent):
        tool = reading("workspace_read", label="never shown")
        text = await described(agent, tool)
        assert "\n- workspace_read(path: string, offset?: integer, limit?: integer)\n" in text
        lines = text.index("- workspace_read("), text.index("tools.search("), text.index("tools.batch")
        assert list(lines) == sorted(lines)

    @pytest.mark.spec("SCR-022", "SCR-023")
    def test_a_tool_with_many_parameters_shows_twelve_required_ones_first(self):
        names = [f"p{n}" for n in range(14)]
        schema = {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": ["p13", "p12"],
        }
        line = tool_line(reading("many", parameters=schema).spec("en"))
        assert line.startswith("many(p12: string, p13: string, p0?: string, ")
        assert line.endswith(", p9?: string, …)")
        assert line.count(":") == 12

    @pytest.mark.spec("SCR-022", "SCR-024", "SCR-025")
    @pytest.mark.parametrize(
        ("locale", "more"),
        [
            ("en", "and 3 more tools, find them with tools.search"),
            ("vi", "và 3 công cụ nữa, tìm bằng tools.search"),
        ],
    )
    async def test_more_than_thirty_are_counted(self, agent, locale, more):
        tools = [reading(f"tool_{n}") for n in range(32)] + [reading("mcp__a__b")]
        text = await described(agent, *tools, locale=locale)
        assert "- tool_29(" in text
        assert "- tool_30(" not in text
        assert more in text
        assert "find them" not in await described(agent, READ)

    @pytest.mark.spec("SCR-026", "AGT-066")
    async def test_it_ends_with_the_two_ways_to_ask_a_model_where_there_are_any(self, agent):
        last = (await described(agent, READ)).splitlines()[-1]
        assert "llm.classify" in last
        assert "llm.summarise" in last
        assert "llm." not in await described(replace(agent, script_llm=False), READ)

    @pytest.mark.spec("SCR-028", "SCR-018")
    async def test_a_gated_agent_reads_of_the_gate(self, agent):
        gated = await described(replace(agent, script_calls="gated"), READ)
        assert "approval gate judges each such call" in gated
        assert "approval gate" not in await described(agent, READ)

    @pytest.mark.spec("SCR-029")
    async def test_it_says_what_storing_none_does(self, agent):
        text = await described(agent, READ)
        assert "store(key, None) forgets a key rather than keeping a None" in text

    @pytest.mark.spec("SCR-030")
    @pytest.mark.parametrize("locale", ["en", "vi"])
    async def test_with_the_twelve_default_tools_it_has_about_3000_characters(self, agent, locale):
        names = [
            "workspace_read",
            "workspace_list",
            "fetch_url",
            "web_search",
            "memory_search",
            "conversation_search",
            "wiki_get",
            "wiki_search",
            "artifact_list",
            "skill_read",
            "pdf_read",
            "tool_output_read",
        ]
        text = await described(agent, *(reading(name) for name in names), locale=locale)
        assert text.count("\n- ") == 12
        assert 2_500 <= len(text) <= 3_500


class TestTheProfile:
    @staticmethod
    def load(home: Path, text: str):
        agents = Agents(home, CrewConfig())
        home.mkdir(exist_ok=True)
        (home / "agent.yaml").write_text(text)
        agents.load()
        return agents.master

    @pytest.mark.spec("SCR-014")
    def test_the_defaults_and_the_three_values(self, tmp_path):
        assert self.load(tmp_path, "").script_calls == "read_only"
        assert self.load(tmp_path, "").script_llm is True
        for value in ("none", "read_only", "gated"):
            assert self.load(tmp_path, f"script_calls: {value}\n").script_calls == value
        assert self.load(tmp_path, "script_llm: false\n").script_llm is False

    @pytest.mark.spec("SCR-015", "AGT-067")
    @pytest.mark.parametrize(
        "text", ["script_calls: all", "script_calls: true", 'script_llm: "false"', "script_llm: 0"]
    )
    def test_anything_else_stops_the_start_and_names_the_key(self, tmp_path, text):
        with pytest.raises(StartError) as error:
            self.load(tmp_path, text)
        assert text.partition(":")[0] in error.value.text("en")

    @pytest.mark.spec("SCR-014")
    def test_no_other_place_makes_an_agent_gated(self, tmp_path):
        with pytest.raises(ValueError):
            CrewConfig(script_calls="gated")  # type: ignore[call-arg]
        (tmp_path / "agents" / "other").mkdir(parents=True)
        (tmp_path / "agent.yaml").write_text("script_calls: gated\n")
        agents = Agents(tmp_path, CrewConfig())
        agents.load()
        other = agents.get("other")
        assert other is not None
        assert other.script_calls == "read_only"

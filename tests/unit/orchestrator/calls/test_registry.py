"""Which tools an agent holds, and what its list names in vain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from services.orchestrator.calls.registry import OfferedHost, ToolRegistry
from services.orchestrator.hosts.local import LocalToolHost
from tests.unit.orchestrator.calls.parts import Scripted, agent_in


class WorkOnly(Scripted):
    def offered_to(self, mode, settings):
        return mode == "work"


@pytest.fixture
def agent(tmp_path):
    return agent_in(tmp_path / "home")


def registry(*tools: Scripted, **host) -> ToolRegistry:
    return ToolRegistry([OfferedHost(LocalToolHost("tools", tools), **host)])


@pytest.mark.spec("TLS-036", "TLS-044", "AGT-072", "TLS-006")
async def test_mode_and_list_shape_the_active_set_in_its_order(agent):
    found = registry(Scripted("read"), Scripted("write"), WorkOnly("grep"))
    assert (await found.toolbox(agent, "en")).names == ["read", "write"]
    assert (await found.toolbox(replace(agent, mode="work"), "en")).names == ["read", "write", "grep"]
    listed = replace(agent, mode="work", tools=("grep", "read"))
    assert (await found.toolbox(listed, "en")).names == ["read", "grep"]


@pytest.mark.spec(
    "TLS-037", "TLS-038", "TLS-039", "TLS-040", "TLS-041", "PIP-117", "AGT-055", "AGT-056", "AGT-057"
)
async def test_names_that_give_nothing_are_warnings_one_each(agent):
    names = ("read", "nope", "grep", "image_read", "browser_act", "computer_act", "nope")
    warnings = await registry(Scripted("read"), WorkOnly("grep")).warnings(replace(agent, tools=names), "en")
    assert len(warnings) == 4
    for warning, parts in zip(
        warnings,
        [
            ("nope", "no tool"),
            ("grep", "nothing"),
            ("browser_act", '"browser"'),
            ("computer_act", '"computer"'),
        ],
        strict=True,
    ):
        assert all(part in warning for part in parts)


@pytest.mark.spec("TLS-042", "AGT-058")
async def test_mcp_tools_and_the_two_finders_follow_no_list(agent):
    found = registry(Scripted("read"), Scripted("mcp__notes__search"), Scripted("tool_script"))
    box = await found.toolbox(replace(agent, tools=("read",)), "en")
    assert box.names == ["read", "mcp__notes__search", "tool_script"]


@pytest.mark.spec("TLS-011")
async def test_tools_that_cannot_be_offered_are_passed_over(agent):
    first = LocalToolHost(
        "a", [Scripted("read"), Scripted("batch"), Scripted("bad name"), Scripted("x" * 65)]
    )
    broken = Scripted("broken", parameters={"type": "array"})
    second = LocalToolHost("b", [Scripted("read", label="other"), broken, Scripted("only_b")])
    found = ToolRegistry([OfferedHost(first), OfferedHost(second)])
    box = await found.toolbox(agent, "en")
    assert [(tool.spec.name, tool.host.name) for tool in box.tools] == [("read", "a"), ("only_b", "b")]


async def test_a_host_may_be_for_some_agents_only(agent):
    found = registry(Scripted("read"), agents=frozenset({"coach"}))
    assert (await found.toolbox(agent, "en")).names == []
    assert (await found.toolbox(replace(agent, id="coach"), "en")).names == ["read"]


@pytest.mark.spec("TLS-391", "TLS-392")
async def test_rows_are_the_union_of_what_agents_hold(agent):
    found = registry(Scripted("read"), Scripted("write"), WorkOnly("grep"))
    coach = replace(agent, id="coach", tools=("write",))
    rows = await found.rows([agent, coach], "en")
    assert [(row.spec.name, list(row.agents)) for row in rows] == [
        ("read", ["default"]),
        ("write", ["default", "coach"]),
    ]


@pytest.mark.spec("PIP-012")
@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("workspce_read", "workspace_read"),
        ("Workspace-Read", "workspace_read"),
        ("workspace.read", "workspace_read"),
    ],
)
async def test_nearest_names(agent, name, nearest):
    box = await registry(Scripted("workspace_read"), Scripted("shell_run")).toolbox(agent, "en")
    assert box.nearest(name)[0] == nearest
    assert box.nearest("zzzz") == []
    assert box.nearest("x" * 1_000_000) == []

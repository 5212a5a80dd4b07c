"""Reading the crew from a home."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from services.common.settings.config import CrewConfig
from services.common.start import StartError
from services.orchestrator.agents.agents import Agents


def crew(home: Path, usable=lambda _: True, **config: Any) -> Agents:
    agents = Agents(home, CrewConfig(**config), usable=usable)
    agents.load()
    return agents


def profile(home: Path, text: str, agent_id: str = "coach") -> Path:
    folder = home if agent_id == "default" else home / "agents" / agent_id
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "agent.yaml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.spec("AGT-005", "AGT-006", "AGT-079", "FLD-054")
def test_a_first_start_makes_the_home_and_the_second_changes_nothing(tmp_path):
    home = tmp_path / "new" / "home"
    master = crew(home).master
    assert (master.id, master.master, master.workspace) == ("default", True, home / "workspace")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(master.workspace.stat().st_mode) == 0o2775
    assert (home / "users" / "owner").is_dir()
    assert (home / "memory").is_dir()
    (home / "config.yaml").write_text("language: vi\n")
    (home / "agent.yaml").write_text("name: Mine\n")
    assert crew(home).master.name == "Mine"
    assert (home / "config.yaml").read_text() == "language: vi\n"


def test_a_home_that_was_filled_by_hand_gets_no_files(tmp_path):
    profile(tmp_path, "name: Coach")
    crew(tmp_path)
    assert not (tmp_path / "agent.yaml").exists()


@pytest.mark.spec("AGT-041", "AGT-073", "AGT-080")
def test_the_master_comes_first_and_work_changes_three_defaults(tmp_path):
    profile(tmp_path, "mode: work", "zed")
    profile(tmp_path, "mode: work\nautonomous: false\ncost_cap_usd: 1\nmax_steps: 3", "abe")
    agents = crew(tmp_path, max_steps=7, cost_cap_usd=0.2)
    assert [agent.id for agent in agents.list()] == ["default", "abe", "zed"]
    settings = [(agent.autonomous, agent.cost_cap_usd, agent.max_steps) for agent in agents.list()]
    assert settings == [(False, 0.2, 7), (False, 1.0, 3), (True, 20.0, 120)]
    assert agents.get("nobody") is None


@pytest.mark.spec("AGT-040", "AGT-043", "AGT-046", "AGT-049", "AGT-029")
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("nmae: x", "nmae"),
        ("mode: wrok", "mode"),
        ("reasoning: extreme", "reasoning"),
        ('shell_network: "false"', "shell_network"),
        ("max_steps: 0", "max_steps"),
        ("max_steps: 1.5", "max_steps"),
        ("max_minutes: 2000", "max_minutes"),
        ("cost_cap_usd: -1", "cost_cap_usd"),
        ("cost_cap_usd: .inf", "cost_cap_usd"),
        ("tool_output_chars: 0", "tool_output_chars"),
        ('shell_ask_patterns: "rm"', "shell_ask_patterns"),
        ("write_paths: [../x]", "write_paths"),
        ("write_paths: [/etc]", "write_paths"),
        ("shell_write_paths: [a/../../b]", "shell_write_paths"),
        ("persona_files: [../env]", "persona_files"),
        ("routes: [nonsense]", "routes"),
        ("shell_limits: {cpu: 5}", "shell_limits.cpu"),
        ("browser: act", "browser"),
    ],
)
def test_a_profile_that_is_not_allowed_stops_the_start_with_file_and_key(tmp_path, text, key):
    path = profile(tmp_path, text)
    with pytest.raises(StartError) as stopped:
        crew(tmp_path)
    for locale in ("en", "vi"):
        sentence = stopped.value.text(locale)
        assert str(path) in sentence
        assert key in sentence


@pytest.mark.parametrize(
    "text", ["[1, 2]", "a: [", "a: &a [*a]", "\x00", "name: !!python/object:os.system x"]
)
def test_a_file_that_is_no_map_stops_the_start(tmp_path, text):
    profile(tmp_path, text)
    with pytest.raises(StartError):
        crew(tmp_path)


@pytest.mark.spec("AGT-007", "AGT-008", "GTW-102")
@pytest.mark.parametrize("name", ["default", "Coach", "a b", "coach\n", "ünder", "x" * 65])
def test_a_folder_whose_name_is_no_id_stops_the_start(tmp_path, name):
    (tmp_path / "agents" / name).mkdir(parents=True)
    with pytest.raises(StartError):
        crew(tmp_path)
    assert list((tmp_path / "agents" / name).iterdir()) == []


def test_hidden_folders_and_files_are_no_agents(tmp_path):
    (tmp_path / "agents" / ".trash" / "old").mkdir(parents=True)
    (tmp_path / "agents" / "readme.txt").write_text("x")
    assert [agent.id for agent in crew(tmp_path).list()] == ["default"]


@pytest.mark.spec("AGT-025", "FLD-019")
def test_allow_patterns_that_allow_everything_are_dropped_with_a_warning(tmp_path):
    profile(
        tmp_path,
        'shell_allow_patterns: ["git status", "*", "python", "/usr/bin/sh", "-", "npx", "make test"]',
    )
    agent = crew(tmp_path).get("coach")
    assert agent.shell_allow_patterns == ("git status", "make test")
    assert len(agent.warnings) == 5
    assert "python" in agent.warnings[1]


@pytest.mark.spec("AGT-039", "AGT-045", "TRN-173")
def test_routes_without_a_key_fall_back_and_say_so(tmp_path):
    profile(tmp_path, "routes: [a:x]\nescalation_route: a:y", "one")
    profile(tmp_path, "routes: [b:x]\nescalation_route: b:x", "two")
    profile(tmp_path, "routes: b:x, a:z\nescalation_route: b:strong", "three")
    agents = crew(tmp_path, usable=lambda route: route.startswith("b:"), routes=("b:shared",))
    one, two, three = (agents.get(name) for name in ("one", "two", "three"))
    assert (one.routes, one.escalation_route, len(one.warnings)) == (("b:shared",), None, 2)
    assert (two.escalation_route, len(two.warnings)) == (None, 1)
    assert (three.routes, three.escalation_route, three.warnings) == (("b:x", "a:z"), "b:strong", ())
    assert len(agents.warnings()) == 3


@pytest.mark.spec("AGT-050", "AGT-051", "TLS-202")
def test_the_grant_holds_what_calls_may_touch(tmp_path):
    profile(
        tmp_path,
        "write_paths: [data/../out, ./docs]\nshell_network: false\nshell_write_paths: [tmp]\n"
        "shell_deny_patterns: [drop table]\nshell_limits: {processes: 9}",
    )
    agents = Agents(tmp_path, CrewConfig(), closed_ports=(7001,), private_paths=(Path("/run/secrets"),))
    agents.load()
    grant = agents.workspace_grant(agents.get("coach"))
    assert grant.root == str(tmp_path / "agents" / "coach" / "workspace")
    assert tuple(grant.write_paths) == ("out", "docs")
    assert (grant.shell_network, tuple(grant.shell_write_paths)) == (False, ("tmp",))
    assert tuple(grant.deny_patterns) == ("drop table",)
    assert grant.limits.processes == 9
    assert grant.limits.cpu_seconds == 600
    assert tuple(grant.closed_ports) == (7001,)
    for private in ("browser", "desktop", "env", "config.yaml", "agent.yaml", "agents/coach/agent.yaml"):
        assert str(tmp_path / private) in grant.private_paths
    assert "/run/secrets" in grant.private_paths
    assert "rm -rf" in grant.ask_patterns


def test_on_a_workspaces_volume_each_agent_has_its_place(tmp_path):
    volume = tmp_path / "volume"
    home = tmp_path / "home"
    profile(home, "workspace: ../../workspace", "shared")
    profile(home, "", "coach")
    agents = crew(home, workspaces_dir=volume)
    assert agents.master.workspace == volume / "default"
    assert agents.get("shared").workspace == volume / "default"
    assert agents.get("coach").workspace == volume / "coach"
    profile(home, "workspace: /srv/elsewhere", "coach")
    with pytest.raises(StartError) as stopped:
        crew(home, workspaces_dir=volume)
    assert "/srv/elsewhere" in stopped.value.text("en")


async def test_a_reload_that_fails_keeps_the_crew_as_it_was(tmp_path):
    path = profile(tmp_path, "name: Coach")
    agents = crew(tmp_path)
    path.write_text("nmae: Coach")
    (problem,) = await agents.reload()
    assert "nmae" in problem
    assert agents.get("coach").name == "Coach"
    path.write_text("name: New")
    assert await agents.reload() == []
    assert agents.get("coach").name == "New"


@pytest.mark.spec("AGT-071", "AGT-136")
def test_persona_names_are_the_files_that_exist(tmp_path):
    profile(tmp_path, "persona_files: [SOUL.md, AGENTS.md]")
    (tmp_path / "agents" / "coach" / "AGENTS.md").write_text("x")
    assert crew(tmp_path).get("coach").persona_names == ["AGENTS.md"]


def test_a_home_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError) as stopped:
        crew(tmp_path / "file" / "home")
    assert str(tmp_path / "file") in stopped.value.text("vi")

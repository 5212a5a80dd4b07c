"""What "always" lets through, and what it does not (FLD-021)."""

from __future__ import annotations

import pytest

from services.orchestrator.calls.grants import covering, offered


@pytest.mark.spec("FLD-021")
@pytest.mark.parametrize(
    ("command", "scope"),
    [
        ("git status", "git status"),
        ("git status -s --porcelain", "git status"),
        ("ls", "ls"),
        ("ls -la /tmp", "ls"),
        ("python3 x.py", None),
        ("bash -c ls", None),
        ("find . -name x", None),
        ("git status && ls", None),
        ("git status > x", None),
        ("git $(id)", None),
        ("./run.sh", None),
        ("", None),
    ],
)
def test_a_command_offers_its_program_and_first_subcommand(command, scope):
    expected = [f"shell_run:{scope}", "shell_run"] if scope else []
    assert offered("shell_run", {"command": command}) == expected


@pytest.mark.spec("FLD-021", "TRN-201")
@pytest.mark.parametrize(
    "command", ["git status", "git  status -s", "git status; git status -s", "git status | git status"]
)
def test_a_scope_covers_its_own_commands(command):
    assert covering("shell_run", {"command": command}, ["shell_run:git status"]) == "shell_run:git status"


@pytest.mark.spec("FLD-021")
@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git",
        "gitstatus",
        "git statusx",
        "git status && touch x",
        "git status || touch x",
        "git status; touch x",
        "git status & touch x",
        "git status | sh",
        "git status\ntouch x",
        "git status $(touch x)",
        "git status `touch x`",
        "git status <(touch x)",
        "git status > ~/.bashrc",
        "git status >> x",
        "git status 2>x",
        "git status | xargs rm",
        "git status && env touch x",
        "eval git status",
        "exec git status",
        "A=1 git status",
        "echo git status",
        "git \\\nstatus",
        "",
        None,
        5,
        ["git status"],
    ],
)
def test_a_scope_covers_nothing_else(command):
    assert covering("shell_run", {"command": command}, ["shell_run:git status"]) is None


@pytest.mark.spec("FLD-021")
def test_a_folder_covers_what_is_below_it():
    assert offered("workspace_write", {"path": "notes/a.md", "content": ""}) == [
        "workspace_write:notes/",
        "workspace_write",
    ]
    assert offered("workspace_write", {"path": "a.md"}) == ["workspace_write"]
    grants = ["workspace_write:notes/"]
    for path in ("notes/b.md", "notes/x/y", "./notes/a", "x/../notes/a"):
        assert covering("workspace_write", {"path": path}, grants)
    for path in (
        "notes",
        "notesx/a",
        "notes/../a",
        "/notes/a",
        "../notes/a",
        "notes/../../a",
        "",
        None,
        "notes/\0",
    ):
        assert covering("workspace_write", {"path": path}, grants) is None
    both = {"files": [{"path": "notes/a"}, {"path": "b"}]}
    assert covering("workspace_write", both, grants) is None
    assert covering("workspace_write", {"files": [{"path": "notes/a"}]}, grants)
    assert covering("workspace_write", {"files": ["notes/a"]}, grants) is None
    assert covering("workspace_write", {}, grants) is None


def test_a_whole_tool_covers_it_and_no_other():
    assert covering("workspace_edit", {}, ["workspace_write", "workspace_edit"]) == "workspace_edit"
    assert covering("shell_run", {"command": "ls"}, ["workspace_edit", "shell_runx", "shell_run:"]) is None
    assert covering("other", {"a": 1}, ["other:scope"]) is None

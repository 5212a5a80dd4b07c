"""The walls of a workspace: what may not be reached, on every tool, on disk and in memory."""

from __future__ import annotations

import os
from typing import Any

import pytest

from services.common.toolhost.contract import Refuse, ToolResult, WorkspaceGrant
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.paths import check_writable, is_below, relative_path
from tests.unit.tools.workspace.conftest import Bench

OUTSIDE = [
    "../outside.txt",
    "..",
    "a/../../outside.txt",
    "/etc/passwd",
    "/",
    "//etc/passwd",
    "./../ws-evil/x",
    "a/b/../../../outside.txt",
]
STRANGE = ["a\0b", "a\nb", "\x1b[31m", "a\x7f", "", "   ", "a\u0085b", "\t"]


async def everywhere(bench: Bench, path: str) -> dict[str, ToolResult]:
    """What every tool says to `path`."""
    calls: dict[str, dict[str, Any]] = {
        "workspace_list": {"path": path},
        "workspace_read": {"path": path},
        "workspace_write": {"path": path, "content": "x", "overwrite": True},
        "workspace_edit": {"path": path, "old": "x", "new": "y"},
        "workspace_grep": {"pattern": "x", "path": path},
    }
    return {tool: await bench.run(tool, arguments) for tool, arguments in calls.items()}


@pytest.mark.spec("TLS-194", "TLS-196", "TLS-197", "TLS-198", "PIP-127", "TLS-048")
@pytest.mark.parametrize("path", OUTSIDE)
async def test_no_path_leads_out(bench: Bench, path: str) -> None:
    bench.folder("a/b")
    beside = os.path.dirname(bench.root)
    os.makedirs(os.path.join(beside, "ws-evil"), exist_ok=True)
    before = sorted(os.listdir(beside))
    for tool, result in (await everywhere(bench, path)).items():
        assert result.is_error, tool
        assert result.refused, tool
        assert "out of the workspace" in result.text, tool
    assert isinstance(await bench.judge("workspace_write", {"path": path, "content": "x"}), Refuse)
    assert sorted(os.listdir(beside)) == before


@pytest.mark.spec("TLS-200", "PIP-127")
@pytest.mark.parametrize("path", STRANGE)
async def test_strange_characters_are_refused_at_first_sight(bench: Bench, path: str) -> None:
    for tool, result in (await everywhere(bench, path)).items():
        if not path.strip() and tool in {"workspace_list", "workspace_grep"} and not path:
            continue  # left empty, these two mean the workspace itself
        assert result.is_error, tool
        assert result.refused, tool
        assert "\n" not in result.text
        assert "\0" not in result.text


@pytest.mark.spec("TLS-194")
async def test_absolute_and_roundabout_paths_inside_are_fine(bench: Bench) -> None:
    bench.put("a/x.txt", "hello")
    for path in (f"{bench.root}/a/x.txt", "./a/x.txt", "a/../a/x.txt", "b/../a/./x.txt", "a//x.txt"):
        assert (await bench.run("workspace_read", {"path": path})).text == "hello", path


@pytest.mark.spec("TLS-195", "TLS-242")
async def test_links_inside_are_followed_and_links_out_are_not(bench: Bench) -> None:
    bench.put("data/x.txt", "hello")
    bench.link("to-file", "data/x.txt")
    bench.link("to-folder", "data")
    bench.link("absolute", f"{bench.root}/data")
    bench.link("up-and-down", "../ws/data")
    bench.link("chain", "to-folder")
    for path in ("to-file", "to-folder/x.txt", "absolute/x.txt", "chain/x.txt"):
        assert (await bench.run("workspace_read", {"path": path})).text == "hello", path
    for name, target in (
        ("etc", "/etc"),
        ("passwd", "/etc/passwd"),
        ("up", ".."),
        ("deep", "data/../../.."),
        ("dangling", "/nowhere/at/all"),
        ("second", "etc"),
    ):
        bench.link(name, target)
        for path in (name, f"{name}/x"):
            for tool, result in (await everywhere(bench, path)).items():
                assert result.is_error, (tool, path)
                assert result.refused, (tool, path)
    found = await bench.run("workspace_glob", {"pattern": "**/*"})
    assert "passwd" not in found.text
    assert "to-file" in found.text.splitlines()
    assert (await bench.run("workspace_grep", {"pattern": "root"})).absent


async def test_a_loop_of_links_ends(bench: Bench) -> None:
    bench.link("a", "b")
    bench.link("b", "a")
    bench.link("self", "self/self")
    for path in ("a", "b/x", "self"):
        for tool, result in (await everywhere(bench, path)).items():
            assert result.is_error, (tool, path)
            assert "leads back to itself" in result.text, (tool, path)
    assert (await bench.run("workspace_glob", {"pattern": "**/*"})).absent


@pytest.mark.spec("TLS-202", "TLS-203", "TLS-204", "TLS-205", "TLS-207")
async def test_private_folders_are_closed_in_every_spelling(bench: Bench) -> None:
    bench.put("browser/coach/Cookies", "secret cookie")
    bench.put("desktop/state", "secret state")
    bench.put("run/desk.sock", "secret socket")
    bench.put("browserish/fine.txt", "cookie recipe")
    bench.link("link", "browser")
    bench.link("deep", "browser/coach/Cookies")
    private = tuple(f"{bench.root}/{name}" for name in ("browser", "desktop", "run/desk.sock"))
    bench.context = type(bench.context)("default", "c1", "r1", "k0", bench.grant(private_paths=private))
    for path in (
        "browser",
        "browser/coach/Cookies",
        "desktop",
        "run/desk.sock",
        "link",
        "link/coach/Cookies",
        "deep",
        "x/../browser",
        f"{bench.root}/desktop/state",
        "BROWSER/coach/Cookies",
        "Desktop/new",
    ):
        for tool, result in (await everywhere(bench, path)).items():
            assert result.is_error, (tool, path)
            assert result.refused, (tool, path)
            assert "closed" in result.text, (tool, path)
            assert "secret" not in result.text
    assert (await bench.run("workspace_read", {"path": "browserish/fine.txt"})).text == "cookie recipe"
    grep = await bench.run("workspace_grep", {"pattern": "cookie|secret"})
    assert grep.text.splitlines()[0] == "browserish/fine.txt:1: cookie recipe"
    assert "secret" not in grep.text
    glob = await bench.run("workspace_glob", {"pattern": "**/*"})
    assert [line for line in glob.text.splitlines() if "/" in line] == ["browserish/fine.txt"]
    for pattern in ("browser/**/*", "desktop/*"):
        named = await bench.run("workspace_glob", {"pattern": pattern})
        assert named.refused, pattern
    assert bench.get("browser/coach/Cookies") == b"secret cookie"


@pytest.mark.spec("TLS-208", "TLS-209", "TLS-210", "TLS-211", "TLS-212", "TLS-215")
async def test_write_paths_hold_as_text_and_as_what_they_point_to(bench: Bench) -> None:
    bench.put("other/secret.txt", "x")
    bench.folder("data")
    bench.link("data/out", "../other")
    bench.link("shortcut", "data")
    bench.context = type(bench.context)(
        "default", "c1", "r1", "k0", bench.grant(write_paths=("data", "notes.md"))
    )
    for path in ("data/a.txt", "data/deep/er/b.txt", "notes.md", "x/../data/c.txt"):
        assert not (await bench.run("workspace_write", {"path": path, "content": "x"})).is_error, path
    for path in (
        "data/../a.txt",
        "database/a.txt",
        "a.txt",
        "data/out/new.txt",
        "data/out/secret.txt",
        "shortcut/d.txt",
        "notes.md.bak",
        "other/secret.txt",
    ):
        for tool, arguments in (
            ("workspace_write", {"path": path, "content": "x", "overwrite": True}),
            ("workspace_edit", {"path": path, "old": "x", "new": "y"}),
        ):
            result = await bench.run(tool, arguments)
            assert result.is_error, (tool, path)
            assert result.refused, (tool, path)
            assert "data, notes.md" in result.text, (tool, path)
            assert "Status: BLOCKED" in result.text
    assert not bench.exists("database")
    assert not bench.exists("other/new.txt")
    assert bench.get("other/secret.txt") == b"x"
    assert (await bench.run("workspace_read", {"path": "other/secret.txt"})).text == "x"


@pytest.mark.spec("TLS-213")
def test_an_entry_that_leaves_the_workspace_allows_nothing() -> None:
    for entry in ("..", "../data", "/etc", "data/../../x"):
        grant = WorkspaceGrant("/ws", write_paths=(entry,))
        with pytest.raises(WorkspaceFault):
            check_writable(grant, "a", "a")
    check_writable(WorkspaceGrant("/ws", write_paths=(".",)), "a", "a")
    check_writable(WorkspaceGrant("/ws"), "a", "a")


@pytest.mark.spec("TLS-196")
def test_below_means_whole_components() -> None:
    assert is_below("/ws/a", "/ws")
    assert is_below("/ws", "/ws")
    assert not is_below("/ws-evil", "/ws")
    assert not is_below("/w", "/ws")


def test_names_longer_than_a_disk_takes_are_refused() -> None:
    grant = WorkspaceGrant("/ws")
    for path in ("a" * 256, "é" * 128, "/".join(["ab"] * 1500)):
        with pytest.raises(WorkspaceFault) as refused:
            relative_path(grant, path)
        assert refused.value.kind == "name_too_long"
    assert relative_path(grant, "a" * 255) == "a" * 255


@pytest.mark.spec("PIP-127")
async def test_a_call_without_a_root_reaches_nothing(disk: Bench) -> None:
    for root in ("", "relative", "."):
        disk.context = type(disk.context)("default", "c1", "r1", "k0", WorkspaceGrant(root=root))
        for tool, result in (await everywhere(disk, "x")).items():
            assert result.is_error, (tool, root)
            assert result.refused, (tool, root)

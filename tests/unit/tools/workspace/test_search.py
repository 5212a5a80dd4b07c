"""workspace_grep and workspace_glob, by ripgrep, by Python and in memory."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from services.tools.workspace.disk import matching, searching
from services.tools.workspace.disk.matching import Engine, PythonEngine, RipgrepEngine
from services.tools.workspace.disk.searching import DiskSearch
from services.tools.workspace.workspace_grep import WorkspaceGrep
from tests.unit.tools.workspace.conftest import Bench

RG = shutil.which("rg")
needs_rg = pytest.mark.skipif(RG is None, reason="ripgrep is not installed")


def engines() -> list[Engine]:
    return [PythonEngine(), *([RipgrepEngine(RG)] if RG else [])]


def hits_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if ": " in line and line.split(":")[1].isdigit()]


@pytest.mark.spec("TLS-233", "TLS-236", "TLS-237", "TLS-240", "TLS-430", "TLS-059")
async def test_hits_by_path_and_line(bench: Bench) -> None:
    bench.put("b.py", "x = 1\n# TODO one\n\n# TODO two\n")
    bench.put("a/z.txt", "no TODO? yes TODO\n")
    bench.put("a.txt", "TODO first by name\n")
    bench.put(".hidden/.file", "TODO hidden\n")
    bench.put(".gitignore", "b.py\n")
    for folder in (".git", ".venv", "node_modules", "a/__pycache__", "dist", "a/build"):
        bench.put(f"{folder}/x.py", "TODO skipped\n")
    bench.put("bin.dat", b"TODO\0binary\n")
    result = await bench.run("workspace_grep", {"pattern": "TODO"})
    assert result.text.splitlines() == [
        ".hidden/.file:1: TODO hidden",
        "a.txt:1: TODO first by name",
        "a/z.txt:1: no TODO? yes TODO",
        "b.py:2: # TODO one",
        "b.py:4: # TODO two",
        "5 in all; there are no more.",
    ]
    none = await bench.run("workspace_grep", {"pattern": "FIXME"})
    assert (none.is_error, none.absent) == (False, True)
    assert 'No line matches "FIXME"' in none.text


@pytest.mark.spec("TLS-233", "TLS-430")
async def test_path_and_glob_narrow(bench: Bench) -> None:
    bench.put("src/a.py", "needle\n")
    bench.put("src/deep/b.ts", "needle\n")
    bench.put("docs/c.py", "needle\n")
    for arguments, files in (
        ({"path": "src"}, ["src/a.py", "src/deep/b.ts"]),
        ({"path": "src/a.py"}, ["src/a.py"]),
        ({"glob": "*.py"}, ["docs/c.py", "src/a.py"]),
        ({"glob": "src/**/*.{ts,tsx}"}, ["src/deep/b.ts"]),
        ({"path": "src", "glob": "*.ts"}, ["src/deep/b.ts"]),
        ({"path": ""}, ["docs/c.py", "src/a.py", "src/deep/b.ts"]),
    ):
        result = await bench.run("workspace_grep", {"pattern": "needle", **arguments})
        assert [hit.split(":")[0] for hit in hits_of(result.text)] == files, arguments
    missing = await bench.run("workspace_grep", {"pattern": "x", "path": "nowhere"})
    assert missing.is_error
    assert "does not exist" in missing.text


@pytest.mark.spec("TLS-237", "TLS-430", "FLD-069")
async def test_more_hits_than_a_page(bench: Bench) -> None:
    bench.put("many.txt", "".join(f"hit {n}\n" for n in range(300)))
    for n in range(10):
        bench.put(f"node_modules/{n}.txt", "hit\n")
    for n in range(5):
        bench.put(f"b{n}.bin", b"hit\0\n")
    first = await bench.run("workspace_grep", {"pattern": "hit"}, output_chars=20_000)
    assert len(hits_of(first.text)) == 200
    assert "offset=200" in first.text
    assert "Narrow" in first.text
    second = await bench.run("workspace_grep", {"pattern": "hit", "offset": 200}, output_chars=20_000)
    assert len(hits_of(second.text)) == 100
    assert "300 in all" in second.text
    seen: list[str] = []
    while len(seen) < 300:
        page = await bench.run("workspace_grep", {"pattern": "hit", "offset": len(seen)}, output_chars=1000)
        assert len(page.text) <= 1000
        seen += hits_of(page.text)
    assert seen == [f"many.txt:{n + 1}: hit {n}" for n in range(300)]
    beyond = await bench.run("workspace_grep", {"pattern": "hit", "offset": 300})
    assert beyond.absent
    assert "beyond offset 300" in beyond.text


@pytest.mark.spec("TLS-239")
@pytest.mark.parametrize(
    "pattern", ["(", "[a", "*", "a{2,1}", "\\", "(?P<x", "[[:alpha:]]", "a\nb", "x" * 1001]
)
async def test_a_pattern_that_is_none(bench: Bench, pattern: str) -> None:
    bench.put("a.txt", "x")
    result = await bench.run("workspace_grep", {"pattern": pattern})
    assert result.is_error
    assert "cannot be used: " in result.text


@pytest.mark.spec("TLS-239")
@pytest.mark.parametrize("pattern", ["-e", "--files", "-", "--pre=touch hacked", "--", "@a", "-f/etc/passwd"])
async def test_a_pattern_that_looks_like_an_option(bench: Bench, pattern: str) -> None:
    bench.put("a.txt", f"line with {pattern} in it\nother\n")
    result = await bench.run("workspace_grep", {"pattern": pattern})
    assert hits_of(result.text) == [f"a.txt:1: line with {pattern} in it"]


async def test_long_lines_are_cut_and_strange_ones_stay_on_theirs(bench: Bench) -> None:
    bench.put("wide.txt", "needle" + "é" * 5000 + "\n")
    bench.put("cr.txt", "needle\rover\rwritten\n")
    bench.put("latin.txt", "needle caf\xe9\n".encode("latin-1"))
    text = (await bench.run("workspace_grep", {"pattern": "needle"})).text
    lines = text.splitlines()
    assert lines[0] == "cr.txt:1: needle\\rover\\rwritten"
    assert lines[1] == "latin.txt:1: needle caf\ufffd"
    assert lines[2].endswith("…")
    assert len(lines[2]) < 330


TREE = {
    "a.py": "def add(a, b):\n    return a + b\n\nclass Ähre:\n    pass\n",
    "crlf.txt": "first end\r\nsecond end\r\n",
    "bom.txt": "\ufefffirst\nsecond\n",
    "empty.txt": "",
    "no-end.txt": "last line without end",
    "tabs.txt": "\tindented\n  spaced\n",
    "vi.txt": "một hai ba\nBỐN năm\n",
    "odd-\u00e9\u00e8.txt": "Straße 12\n",
    "sub/deep/x.txt": "a1b2c3\n\n\nfoo.bar(baz)\n",
    "sub.txt": "sorted between\n",
}
PATTERNS = [
    "end$", "^first", "^second$", "a", ".", "^$", r"\w+\(", r"\d+", r"\bhai\b", "(?i)bốn", "[äÄ]hre",
    r"^\s+\w", "x|y|foo", "a{1,2}", "(a)(b)?", r"foo\.bar", "[^a-z]", r"\S+$", "ß", "e.t", "z*", r"\t",
    r"(?<=foo)\.bar", r"(\w)\1", "(?:a|b)+?c", r"a++b", "[[a]", r"\<x", "(?i)STRASSE|straße", r"\Aa",
    r"\u0061",
]  # fmt: skip


@needs_rg
@pytest.mark.spec("TLS-234", "TLS-235")
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.filterwarnings("ignore::FutureWarning")
async def test_both_ways_return_the_same_hits(disk: Bench, pattern: str) -> None:
    for path, text in TREE.items():
        disk.put(path, text)
    answers = []
    for engine in engines():
        disk.tools["workspace_grep"] = WorkspaceGrep(DiskSearch(engine))
        answers.append(await disk.run("workspace_grep", {"pattern": pattern}))
    assert not answers[0].is_error
    assert answers[0] == answers[1]


@needs_rg
@pytest.mark.spec("TLS-234")
async def test_ripgrep_is_what_runs_when_it_is_installed(disk: Bench) -> None:
    class Watched(RipgrepEngine):
        ran = 0

        async def match(self, pattern: str, files: Sequence[searching.OpenFile], count: int, seconds: float):  # type: ignore[no-untyped-def]
            self.ran += 1
            return await super().match(pattern, files, count, seconds)

    assert RG is not None
    engine = Watched(RG)
    disk.put("a.txt", "needle\n")
    disk.tools["workspace_grep"] = WorkspaceGrep(DiskSearch(engine))
    assert hits_of((await disk.run("workspace_grep", {"pattern": "needle"})).text)
    assert engine.ran == 1
    assert hits_of((await disk.run("workspace_grep", {"pattern": "(?<=n)eedle"})).text)
    assert engine.ran == 1


@pytest.mark.spec("FLD-070")
async def test_folders_behind_the_files_that_took_the_time_are_counted(disk: Bench) -> None:
    class Slow(PythonEngine):
        async def match(self, pattern: str, files: Sequence[searching.OpenFile], count: int, seconds: float):  # type: ignore[no-untyped-def]
            return [], True

    for folder in ("a", "b", "c"):
        for number in range(150):
            disk.put(f"{folder}/{number:03}.txt", "hay\n")
    disk.tools["workspace_grep"] = WorkspaceGrep(DiskSearch(Slow()))
    crowded = await disk.run("workspace_grep", {"pattern": "needle"})
    # The first batch reaches into b; c was not begun.
    assert "stopped after 30 s; 2 or more folders" in crowded.text
    last = await disk.run("workspace_grep", {"pattern": "needle", "path": "c"})
    assert "stopped after 30 s; 1 or more folders" in last.text


@pytest.mark.spec("TLS-238", "PIP-041")
@pytest.mark.parametrize("engine", engines(), ids=lambda engine: type(engine).__name__)
async def test_a_pattern_without_end_is_ended(disk: Bench, engine: Engine) -> None:
    """Back references make Python's engine try for ever; ripgrep leaves such patterns to it."""
    disk.put("a.txt", "hit before\n")
    disk.put("b.txt", "a" * 40 + "!\n")
    search = DiskSearch(engine)

    class Hasty:
        async def search(self, grant, query):  # type: ignore[no-untyped-def]
            return await search.search(grant, replace(query, seconds=2.0))

    disk.tools["workspace_grep"] = WorkspaceGrep(Hasty())  # type: ignore[arg-type]
    result = await asyncio.wait_for(disk.run("workspace_grep", {"pattern": r"hit|^(a+)+$(?=.)|(x)\2"}), 30)
    assert not result.is_error
    assert hits_of(result.text) == ["a.txt:1: hit before"]
    assert "stopped after 30 s" in result.text


async def test_a_search_program_that_breaks_is_no_absence(
    disk: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "matcher.py"
    broken.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    monkeypatch.setattr(matching, "_MATCHER", broken)
    disk.put("a.txt", "needle\n")
    disk.tools["workspace_grep"] = WorkspaceGrep(DiskSearch(PythonEngine()))
    with pytest.raises(matching.SearchBroke):
        await disk.run("workspace_grep", {"pattern": "needle"})


async def test_a_cancelled_search_leaves_no_process(disk: Bench) -> None:
    disk.put("b.txt", "a" * 40 + "!\n")
    task = asyncio.create_task(disk.run("workspace_grep", {"pattern": r"^(a+)+$(?=.)|(x)\2"}))
    while not (children := _matchers()):
        await asyncio.sleep(0.02)
    task.cancel()
    result = await task
    assert result.is_error
    assert "was cancelled" in result.text
    assert not [pid for pid in children if os.path.exists(f"/proc/{pid}")]


def _matchers() -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status") as status, open(f"/proc/{pid}/cmdline", "rb") as command:
                mine = f"PPid:\t{os.getpid()}\n" in status.read()
                if mine and b"matcher.py" in command.read():
                    found.append(pid)
        except OSError:
            continue
    return found


async def test_more_files_than_one_batch(disk: Bench) -> None:
    for number in range(450):
        disk.put(f"{number:04}.txt", f"needle {number}\n")
    for engine in engines():
        disk.tools["workspace_grep"] = WorkspaceGrep(DiskSearch(engine))
        result = await disk.run("workspace_grep", {"pattern": "needle", "offset": 390}, output_chars=20_000)
        assert hits_of(result.text) == [f"{n:04}.txt:1: needle {n}" for n in range(390, 450)]


@pytest.mark.spec("TLS-241", "TLS-236", "TLS-430")
async def test_glob_lists_files_in_order(bench: Bench) -> None:
    for path in (
        "a.py",
        "src/b.py",
        "src/deep/c.py",
        "src/c.txt",
        ".hidden.py",
        "node_modules/d.py",
        "dist/e.py",
    ):
        bench.put(path, "x")
    bench.folder("empty.py")
    for pattern, expected in (
        ("*.py", [".hidden.py", "a.py"]),
        ("**/*.py", [".hidden.py", "a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("src/**", ["src/b.py", "src/c.txt", "src/deep/c.py"]),
        ("**/c.*", ["src/c.txt", "src/deep/c.py"]),
        ("src/{b,x}.py", ["src/b.py"]),
        ("./src/?.py", ["src/b.py"]),
        ("/a.py", ["a.py"]),
        ("src/[!b].*", ["src/c.txt"]),
    ):
        result = await bench.run("workspace_glob", {"pattern": pattern})
        *paths, footer = result.text.splitlines()
        assert paths == expected, pattern
        assert footer == f"{len(expected)} in all; there are no more."
    none = await bench.run("workspace_glob", {"pattern": "*.rs"})
    assert (none.is_error, none.absent) == (False, True)
    assert (await bench.run("workspace_glob", {"pattern": "nowhere/*"})).absent


@pytest.mark.spec("TLS-241", "TLS-430")
async def test_more_files_than_a_page(bench: Bench) -> None:
    for number in range(520):
        bench.put(f"f{number:03}", "")
    first = await bench.run("workspace_glob", {"pattern": "f*"})
    assert len([line for line in first.text.splitlines() if line.startswith("f")]) == 500
    assert "there are more; continue with offset=500" in first.text
    second = await bench.run("workspace_glob", {"pattern": "f*", "offset": 500})
    assert second.text.splitlines()[:-1] == [f"f{number}" for number in range(500, 520)]


@pytest.mark.parametrize("pattern", ["../*", "a/../../b", "[", "{a", "{a,b}" * 7, "x" * 1001, "/", " "])
async def test_a_glob_that_is_none(bench: Bench, pattern: str) -> None:
    result = await bench.run("workspace_glob", {"pattern": pattern})
    assert result.is_error
    assert "cannot be used: " in result.text


@pytest.mark.spec("TLS-006")
def test_only_working_agents_hold_edit_grep_and_glob(disk: Bench) -> None:
    offered = {
        mode: [name for name, tool in disk.tools.items() if tool.offered_to(mode, {})]  # type: ignore[arg-type]
        for mode in ("assistant", "work")
    }
    assert offered["assistant"] == ["workspace_list", "workspace_read", "workspace_write"]
    assert offered["work"] == [*offered["assistant"], "workspace_edit", "workspace_grep", "workspace_glob"]

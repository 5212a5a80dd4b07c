"""Syntax checks after a write: what is found, what says nothing, what never makes a write fail."""

from __future__ import annotations

import asyncio
import os
import shutil

import pytest

from services.tools.workspace.checks import checking
from services.tools.workspace.checks.checking import SyntaxChecks
from services.tools.workspace.checks.languages import language_of
from services.tools.workspace.checks.programs import Program
from tests.unit.tools.workspace.conftest import Bench


@pytest.fixture
def checks() -> SyntaxChecks:
    return SyntaxChecks()


async def found(checks: SyntaxChecks, path: str, text: str) -> list[str]:
    report = await checks.check([(path, text.encode())], "en")
    findings = report.details.get("findings", [])
    lines = [f"{f['line']}:{f['column']} {f['message']}" for f in findings]
    assert list(report.lines[1 : 1 + len(lines)]) == lines
    return lines


@pytest.mark.spec("PIP-080")
@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("x.py", "a = 1\n\ndef f(:\n", "3:"),
        ("x.py", "def f():\n    return result\n", "2:12 undefined name 'result'"),
        ("x.py", "import os, sys\nx = 1\n", None),
        ("x.py", "print('fine')\n", None),
        ("x.py", "return 5\n", "1:1 'return' outside function"),
        ("x.json", '{"a": 1,}', "1:"),
        ("x.json", '{"a": [1, 2]}', None),
        ("tsconfig.json", "{ // comment\n}", None),
        ("x.jsonl", '{"a": 1}\n\n{"b"}\n', "3:"),
        ("x.yaml", "a: 1\nb: [1, 2\nc: 3\n", "3:"),
        ("x.yml", "a: !Ref Thing\n---\nb: 2\n", None),
        ("x.toml", "a = 1\nb = \n", "2:"),
        ("x.toml", "a = 1\n[b]\nc = 'x'\n", None),
        ("x.xml", "<a>\n<b></a>\n", "2:"),
        ("x.svg", "<svg/>\n", None),
        ("x.html", "<!doctype html>\n<div>\n<p>one\n<p>two\n<br>\n</div>\n", None),
        ("x.html", "<div>\n<span>\n</div>\n", "2:1 <span> is not closed before </div>"),
        ("x.html", "<main>\n<p>x</p>\n", "1:1 <main> is never closed"),
        ("x.html", "<p>x</p></section>", "1:9 end tag </section> without a beginning"),
        ("x.sh", "if true; then\n  echo a\n", "3:1 syntax error"),
        ("x.sh", "echo fine\n", None),
        ("run", "#!/usr/bin/env python3\nprint(undefined)\n", "2:7 undefined name 'undefined'"),
        ("x.rs", "fn main( {", None),
        ("x.txt", "{", None),
    ],
)
async def test_findings_by_language(checks: SyntaxChecks, path: str, text: str, expected: str | None) -> None:
    lines = await found(checks, path, text)
    if expected is None:
        assert lines == []
    else:
        assert lines
        assert lines[0].startswith(expected), lines


@pytest.mark.spec("PIP-080")
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
async def test_javascript_where_node_is(checks: SyntaxChecks) -> None:
    assert (await found(checks, "x.js", "let a = 1;\nlet b = ;\n"))[0].startswith("2:9 Unexpected token")
    assert (await found(checks, "x.mjs", "import x from 'y';\nlet b = ;\n"))[0].startswith("2:9")
    assert await found(checks, "x.js", "import fs from 'fs';\nexport const a = 1;\n") == []
    assert await found(checks, "x.cjs", "const fs = require('fs');\n") == []


@pytest.mark.spec("PIP-080")
async def test_no_more_than_twenty_and_the_rest_is_counted(checks: SyntaxChecks) -> None:
    text = "".join(f"print(name_{n})\n" for n in range(50))
    report = await checks.check([("x.py", text.encode())], "en")
    assert len(report.details["findings"]) == 20
    assert report.details["findings"][0] == {
        "path": "x.py",
        "line": 1,
        "column": 7,
        "code": "UndefinedName",
        "message": "undefined name 'name_0'",
    }
    assert report.lines[-1] == "and 30 more."


@pytest.mark.spec("PIP-080", "PIP-143")
async def test_the_write_stands_and_the_result_lists_what_was_found(bench: Bench) -> None:
    result = await bench.run("workspace_write", {"path": "x.py", "content": "a = 1\n\ndef f(:\n"})
    assert not result.is_error
    assert bench.get("x.py") == b"a = 1\n\ndef f(:\n"
    assert any(line.startswith("3:") for line in result.text.splitlines())
    assert result.details["findings"][0]["line"] == 3
    edited = await bench.run("workspace_edit", {"path": "x.py", "old": "f(:", "new": "f():\n    return y"})
    assert "4:12 undefined name 'y'" in edited.text
    batch = await bench.run(
        "workspace_write",
        {"files": [{"path": "a.json", "content": "{"}, {"path": "b.json", "content": "[]"}]},
    )
    assert '"a.json" 1:2' in batch.text


@pytest.mark.spec("PIP-143")
async def test_a_check_that_does_not_end_is_left_out_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checking, "SECONDS", 0.5)
    endless = Program(("/bin/sh", "-c", "echo $$ > /proc/self/fd/2; exec sleep 600"), lambda _: [])
    before = set(filter(str.isdigit, os.listdir("/proc")))
    report = await asyncio.wait_for(SyntaxChecks({"shell": endless}).check([("x.sh", b"echo\n")], "vi"), 30)
    assert len(report.lines) == 1
    assert "Kiểm tra cú pháp không xong" in report.lines[0]
    assert report.details == {}
    left = [
        pid
        for pid in set(filter(str.isdigit, os.listdir("/proc"))) - before
        if b"sleep\x00600" in _command(pid)
    ]
    assert left == []


def _command(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


@pytest.mark.spec("PIP-143")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("x.py", "(" * 100_000),
        ("x.py", "x = " + "-" * 50_000 + "1"),
        ("x.py", "x = " + "[" * 5_000 + "]" * 5_000),
        ("x.json", "[" * 200_000),
        ("x.yaml", "[" * 20_000),
        ("x.xml", '<!DOCTYPE a [<!ENTITY b "' + "c" * 1000 + '">' + "".join(
            f'<!ENTITY b{n} "{"&b;" * 100 if not n else f"&b{n - 1};" * 100}">' for n in range(8)
        ) + "]><a>&b7;</a>"),
        ("x.html", "<div>" * 100_000),
        ("x.py", "a = '\\ud800'\n\x0c"),
        ("x.sh", "(" * 50_000),
    ],
)  # fmt: skip
async def test_hostile_text_costs_its_own_check_alone(checks: SyntaxChecks, path: str, text: str) -> None:
    report = await asyncio.wait_for(checks.check([(path, text.encode())], "en"), 30)
    assert len(report.lines) <= 22
    assert all(len(line) < 500 for line in report.lines)
    assert await found(checks, "good.py", "print(1)\n") == []


async def test_checking_is_reading_and_nothing_runs(checks: SyntaxChecks, bench: Bench) -> None:
    marker = f"{bench.root}/ran"
    for path, text in (
        ("x.sh", f"touch {marker}\n$(touch {marker})\n"),
        ("x.py", f"import pathlib\npathlib.Path({marker!r}).touch()\n"),
        ("x.js", f"require('fs').writeFileSync({marker!r}, '')\n"),
        ("x.yaml", f"!!python/object/apply:os.system ['touch {marker}']\n"),
    ):
        await checks.check([(path, text.encode())], "en")
    assert not os.path.exists(marker)


async def test_large_and_binary_files_are_not_checked(checks: SyntaxChecks) -> None:
    assert (await checks.check([("x.json", b"{" * (checking.TEXT_BYTES + 1))], "en")).lines == ()
    assert (await checks.check([("x.json", b"\xff{")], "en")).lines == ()


def test_languages_by_name_and_first_line() -> None:
    assert language_of("a/B.PY", "") == "python"
    assert language_of("script", "#!/bin/sh\n") == "shell"
    assert language_of("script", "no") is None
    assert language_of(".bashrc", "") is None
    assert language_of("a.js", "export default 1\n") == "module"

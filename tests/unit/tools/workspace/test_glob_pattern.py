"""Glob patterns: what they match, and that no pattern takes long."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.tools.workspace.glob_pattern import BadPattern, GlobPattern


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.py", ["a.py", ".py", "a.b.py"], ["a.pyc", "x/a.py", "a.PY"]),
        ("**/*.py", ["a.py", "x/a.py", "x/y/a.py"], ["a.pyx"]),
        ("**", ["a", "a/b/c"], []),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["a", "az", "b/a/z"]),
        ("a/**", ["a/b", "a/b/c"], ["b"]),
        ("**/a/**/b", ["a/b", "x/a/y/b", "a/a/b/b"], ["a", "b/a"]),
        ("a?c", ["abc", "aéc"], ["ac", "abbc", "a/c"]),
        ("[a-c]x", ["ax", "cx"], ["dx"]),
        ("[!a-c]x", ["dx", "-x"], ["ax"]),
        ("[]]x", ["]x"], ["x"]),
        ("{a,b{1,2}}/c", ["a/c", "b1/c", "b2/c"], ["b/c", "b3/c"]),
        ("{,x}y", ["y", "xy"], ["zy"]),
        (r"\*x", ["*x"], ["ax"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("./a//b", ["a/b"], ["ab"]),
    ],
)
@pytest.mark.spec("TLS-241")
def test_what_matches(pattern: str, matching: list[str], other: list[str]) -> None:
    glob = GlobPattern(pattern)
    assert [path for path in matching if not glob.matches(path)] == []
    assert [path for path in other if glob.matches(path)] == []
    for path in matching:
        folders = path.split("/")[:-1]
        assert all(glob.may_lie_below("/".join(folders[: n + 1])) for n in range(len(folders)))


@pytest.mark.spec("FLD-070")
def test_folders_that_cannot_hold_a_match_are_known() -> None:
    assert not GlobPattern("src/*.py").may_lie_below("docs")
    assert not GlobPattern("src/*.py").may_lie_below("src/deep")
    assert GlobPattern("src/**/x").may_lie_below("src/deep/er")
    assert GlobPattern("src/**/x").fixed_prefix == "src"
    assert GlobPattern("a/b/{c,d}/e").fixed_prefix == "a/b"
    assert GlobPattern("a/b/c.txt").fixed_prefix == "a/b"
    assert GlobPattern("*.py").fixed_prefix == ""
    assert GlobPattern("*.py", anywhere=True).matches("a/b/c.py")


def test_patterns_that_ruin_regular_expressions_take_no_time() -> None:
    began = time.monotonic()
    assert not GlobPattern("*a" * 200 + "b").matches("a" * 250)
    assert not GlobPattern("**/" * 100 + "x").matches("/".join("a" * 1000))
    assert not GlobPattern("**/*a*a*a*a*a*a*a*b").matches("/".join(["a" * 200] * 10))
    assert time.monotonic() - began < 20


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab*?[]{},/!-\\", max_size=20), st.text(alphabet="ab/", min_size=1, max_size=20))
def test_any_pattern_answers(pattern: str, path: str) -> None:
    try:
        glob = GlobPattern(pattern)
    except BadPattern:
        return
    assert glob.matches(path) in {True, False}
    assert not glob.fixed_prefix.startswith("/")

"""workspace_edit: exact passages, in order, with what changed shown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.toolhost.contract import NoOpinion, Refuse
from services.tools.workspace.text.edits import Edit, EditFault, apply
from services.tools.workspace.text.marks import FileText
from tests.unit.tools.workspace.conftest import Bench


@pytest.mark.spec("TLS-227", "TLS-231")
async def test_one_passage_is_replaced_and_nothing_else(bench: Bench) -> None:
    bench.put("a.txt", "one\ntwo \t\nthree")
    result = await bench.run("workspace_edit", {"edits": [{"path": "a.txt", "old": "two", "new": "TWO"}]})
    assert not result.is_error
    assert bench.get("a.txt") == b"one\nTWO \t\nthree"
    assert "-two \t" in result.text.splitlines()
    assert "+TWO \t" in result.text.splitlines()


@pytest.mark.spec("TLS-228", "TLS-232", "TLS-230")
async def test_a_passage_there_three_times(bench: Bench) -> None:
    bench.put("a.txt", "x = 1\nx = 1\nx = 1\n")
    edit = {"path": "a.txt", "old": "x = 1", "new": "x = 2"}
    refused = await bench.run("workspace_edit", edit)
    assert refused.is_error
    assert "3 times" in refused.text
    assert bench.get("a.txt") == b"x = 1\nx = 1\nx = 1\n"
    replaced = await bench.run("workspace_edit", {**edit, "replace_all": True})
    assert bench.get("a.txt") == b"x = 2\nx = 2\nx = 2\n"
    assert replaced.text.splitlines().count("+x = 2") == 3
    for old, new in (("", "y"), ("x = 2", "x = 2"), ("absent", "y")):
        assert (await bench.run("workspace_edit", {"path": "a.txt", "old": old, "new": new})).is_error


@pytest.mark.spec("TLS-229")
async def test_a_large_change_shows_forty_lines_and_counts_the_rest(bench: Bench) -> None:
    bench.put("a.txt", "".join(f"v{n} = old\n" for n in range(100)))
    result = await bench.run(
        "workspace_edit", {"path": "a.txt", "old": "= old", "new": "= new", "replace_all": True}
    )
    diff = [line for line in result.text.splitlines() if line[:1] in {"+", "-", "@", " "}]
    assert len(diff) == 40
    # 100 removed, 100 added, one heading.
    assert "161 more lines" in result.text


@pytest.mark.spec("TLS-232", "TLS-057")
async def test_edits_build_on_each_other_and_one_may_fail(bench: Bench) -> None:
    bench.put("a.txt", "one\n")
    bench.put("b.txt", "other\n")
    edits = [
        {"path": "a.txt", "old": "one", "new": "two"},
        {"path": "a.txt", "old": "one", "new": "never"},
        {"path": "b.txt", "old": "other", "new": "same"},
        {"path": "./a.txt", "old": "two", "new": "three"},
        {"path": "missing.txt", "old": "x", "new": "y"},
    ]
    result = await bench.run("workspace_edit", {"edits": edits})
    assert not result.is_error
    assert bench.get("a.txt") == b"three\n"
    assert bench.get("b.txt") == b"same\n"
    failed = [line for line in result.text.splitlines() if line.startswith("Number")]
    assert [line.split()[1] for line in failed] == ["2", "5"]
    assert result.details["failed"] == 2


@pytest.mark.spec("PIP-122", "PIP-014", "TLS-053")
async def test_older_shapes_run_and_are_published_nowhere(bench: Bench) -> None:
    tool = bench.tools["workspace_edit"]
    old = {"path": "a.txt", "old": "1", "new": "2"}
    assert tool.prepare(old) == {"edits": [old]}
    assert tool.prepare({"edits": '[{"path":"a.txt","old":"1","new":"2"}]'}) == {"edits": [old]}
    for other in (
        {"edits": [old]},
        {"edits": "nonsense"},
        {"path": "a"},
        {**old, "edits": [old]},
        {"edits": "{}"},
    ):
        assert tool.prepare(other) == other
    assert old == {"path": "a.txt", "old": "1", "new": "2"}
    for locale in ("en", "vi"):
        assert set(tool.spec(locale).parameters["properties"]) == {"edits"}  # type: ignore[arg-type]
    bench.put("a.txt", "1")
    assert not (await bench.run("workspace_edit", old)).is_error
    assert bench.get("a.txt") == b"2"


@pytest.mark.spec("PIP-070")
async def test_curly_quotes_are_found_and_only_they_change(bench: Bench) -> None:
    bench.put("q.txt", 'say “hi” and "hi" and\u00a0“hi there”\n')
    result = await bench.run("workspace_edit", {"path": "q.txt", "old": "“hi”", "new": "“hello”"})
    assert not result.is_error
    assert bench.get("q.txt") == 'say “hello” and "hi" and\u00a0“hi there”\n'.encode()


@pytest.mark.spec("FLD-068")
@pytest.mark.parametrize("content", [b"a\xff b", b"a\0b", b"\x89PNG\r\n\x1a\n\0"])
async def test_what_is_no_text_stays_byte_for_byte(bench: Bench, content: bytes) -> None:
    bench.put("x", content)
    result = await bench.run("workspace_edit", {"path": "x", "old": "a", "new": "b"})
    assert result.is_error
    assert bench.get("x") == content


@pytest.mark.spec("TLS-231", "FLD-068")
async def test_mixed_line_ends_outside_the_passage_stay(bench: Bench) -> None:
    bench.put("m.txt", b"a\r\nb\r\nc\nd\r\ne\n")
    result = await bench.run("workspace_edit", {"path": "m.txt", "old": "b\nc\nd", "new": "X\nY"})
    assert not result.is_error
    assert bench.get("m.txt") == b"a\r\nX\r\nY\r\ne\n"


@pytest.mark.spec("FLD-022")
async def test_an_approved_edit_is_bound_to_the_file_as_it_was(bench: Bench) -> None:
    bench.put("a.txt", "keep\none\n")
    edit = {"path": "a.txt", "old": "one", "new": "two"}
    verdict = await bench.judge("workspace_edit", edit)
    assert isinstance(verdict, NoOpinion)
    assert "+two" in verdict.preview.splitlines()
    bench.put("a.txt", "kept\none\n")
    refused = await bench.run("workspace_edit", edit, target_state=verdict.target_state)
    assert refused.is_error
    assert "+kept" in refused.text.splitlines()
    assert bench.get("a.txt") == b"kept\none\n"
    again = await bench.judge("workspace_edit", edit)
    assert isinstance(again, NoOpinion)
    assert not (await bench.run("workspace_edit", edit, target_state=again.target_state)).is_error


async def test_nobody_is_asked_about_an_edit_that_cannot_apply(bench: Bench) -> None:
    bench.put("a.txt", "x")
    for edit in ({"old": "absent", "new": "y"}, {"old": "", "new": "y"}, {"old": "x", "new": "x"}):
        assert isinstance(await bench.judge("workspace_edit", {"path": "a.txt", **edit}), Refuse)
    assert isinstance(await bench.judge("workspace_edit", {"edits": []}), Refuse)


@pytest.mark.spec("FLD-067")
async def test_an_edit_makes_the_file_known(bench: Bench) -> None:
    bench.put("a.txt", "one\n")
    await bench.run("workspace_edit", {"path": "a.txt", "old": "one", "new": "two"})
    assert not (await bench.run("workspace_write", {"path": "a.txt", "content": "three\n"})).is_error


_text = st.text(alphabet="ab\r\n é", max_size=30)


@settings(max_examples=300, deadline=None)
@given(before=_text, old=st.text(alphabet="ab\n é", min_size=1, max_size=4), after=_text)
def test_an_edit_touches_its_passage_alone(before: str, old: str, after: str) -> None:
    file = FileText.decode((before + old + after).encode())
    try:
        edited = apply(file, Edit(old, "☃"))
    except EditFault:
        # The passage also arises across the border, or is there by chance once more.
        assert file.text.replace("\r\n", "\n").count(old) != 1
        return
    left, _, right = edited.text.partition("☃")
    assert file.text.startswith(left)
    assert file.text.endswith(right)
    removed = file.text[len(left) : len(file.text) - len(right)]
    assert removed.replace("\r\n", "\n") == old.replace("\r\n", "\n")

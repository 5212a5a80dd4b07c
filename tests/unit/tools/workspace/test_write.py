"""workspace_write: whole files, batches, marks, what may not be written over, what was approved."""

from __future__ import annotations

import pytest

from services.common.toolhost.contract import NoOpinion, Refuse
from tests.unit.tools.workspace.conftest import Bench


@pytest.mark.spec("TLS-224", "PIP-139", "TLS-213")
async def test_a_new_file_with_its_folders(bench: Bench) -> None:
    result = await bench.run("workspace_write", {"path": "a/b/notes.md", "content": "đồng\n"})
    assert result.text == 'Created "a/b/notes.md" (8 bytes).'
    assert result.details["files"] == [{"path": "a/b/notes.md", "bytes": 8, "created": True}]
    assert bench.get("a/b/notes.md") == "đồng\n".encode()


@pytest.mark.spec("PIP-070")
@pytest.mark.parametrize(
    "content",
    [
        "“curly” ‘quotes’ and\u00a0no-break",
        "ends without line break",
        "trailing \t \n\n\n",
        "e\u0301 decomposed, é composed",
        "a\r\nb\nc\rd",
        "",
        "\ufeffstarts with a mark",
        "{curly} {{braces}} %s \\n",
        "zero\u200bwidth",
    ],
)
async def test_new_content_is_written_exactly_as_given(bench: Bench, content: str) -> None:
    result = await bench.run("workspace_write", {"path": "x.txt", "content": content})
    assert not result.is_error
    assert bench.get("x.txt") == content.encode()


@pytest.mark.spec("TLS-224", "FLD-067")
async def test_a_file_that_was_read_is_replaced(bench: Bench) -> None:
    bench.put("n.txt", "old\n")
    await bench.run("workspace_read", {"path": "n.txt"})
    result = await bench.run("workspace_write", {"path": "n.txt", "content": "new\n"})
    assert result.text == 'Replaced "n.txt" (4 bytes).'
    again = await bench.run("workspace_write", {"path": "n.txt", "content": "newer\n"})
    assert not again.is_error
    assert bench.get("n.txt") == b"newer\n"


@pytest.mark.spec("FLD-067")
async def test_a_file_never_read_is_not_written_over_unless_told(bench: Bench) -> None:
    bench.put("n.txt", "precious\n")
    refused = await bench.run("workspace_write", {"path": "n.txt", "content": "x\n"})
    assert refused.is_error
    assert "overwrite" in refused.text
    assert bench.get("n.txt") == b"precious\n"
    told = await bench.run("workspace_write", {"path": "n.txt", "content": "x\n", "overwrite": True})
    assert not told.is_error
    assert bench.get("n.txt") == b"x\n"


@pytest.mark.spec("FLD-067")
async def test_two_conversations_never_lose_the_first_write(bench: Bench) -> None:
    bench.put("n.txt", "".join(f"line {n}\n" for n in range(100)))
    for conversation in ("a", "b"):
        await bench.run("workspace_read", {"path": "n.txt"}, conversation_id=conversation)
    of_a = "".join(f"LINE {n}\n" for n in range(100))
    await bench.run("workspace_write", {"path": "n.txt", "content": of_a}, conversation_id="a")
    for overwrite in (False, True):
        refused = await bench.run(
            "workspace_write",
            {"path": "n.txt", "content": "of b\n", "overwrite": overwrite},
            conversation_id="b",
        )
        assert refused.is_error
        assert "has changed since" in refused.text
        diff = [line for line in refused.text.splitlines() if line[:1] in "+-@ "]
        assert len(diff) == 40
        assert "-line 0" in diff
        assert bench.get("n.txt") == of_a.encode()
    await bench.run("workspace_read", {"path": "n.txt"}, conversation_id="b")
    written = await bench.run("workspace_write", {"path": "n.txt", "content": "of b\n"}, conversation_id="b")
    assert not written.is_error
    assert bench.get("n.txt") == b"of b\n"


@pytest.mark.spec("FLD-067")
async def test_a_window_of_a_file_counts_as_having_read_it(bench: Bench) -> None:
    bench.put("n.txt", "1\n2\n3\n")
    await bench.run("workspace_read", {"path": "n.txt", "limit": 1})
    assert not (await bench.run("workspace_write", {"path": "n.txt", "content": "x\n"})).is_error


@pytest.mark.spec("FLD-067", "TLS-204")
async def test_what_is_known_is_known_under_the_files_own_name(bench: Bench) -> None:
    bench.put("real.txt", "old\n")
    bench.link("alias.txt", "real.txt")
    await bench.run("workspace_read", {"path": "alias.txt"})
    result = await bench.run("workspace_write", {"path": "real.txt", "content": "new\n"})
    assert not result.is_error


@pytest.mark.spec("TLS-226")
async def test_folders_are_not_written_to(bench: Bench) -> None:
    bench.folder("d")
    bench.put("f", "x")
    for path in ("d", "d/", ".", "new/", "f/below"):
        result = await bench.run("workspace_write", {"path": path, "content": "x"})
        assert result.is_error, path
    assert not bench.exists("new")
    assert bench.get("f") == b"x"


@pytest.mark.spec("TLS-052", "TLS-053", "TLS-057", "TLS-058")
async def test_a_batch_keeps_what_succeeded_and_names_what_failed(bench: Bench) -> None:
    bench.put("there.txt", "x")
    files = [
        {"path": "one.txt", "content": "1"},
        {"path": "there.txt", "content": "2"},
        {"path": "../out.txt", "content": "3"},
        {"path": "four.txt", "content": "4"},
    ]
    result = await bench.run("workspace_write", {"files": files})
    assert not result.is_error
    lines = result.text.splitlines()
    assert lines[:2] == ['Created "one.txt" (1 bytes).', 'Created "four.txt" (1 bytes).']
    assert lines[2].startswith("Number 2 failed: ")
    assert lines[3].startswith("Number 3 failed: ")
    assert "out of the workspace" in lines[3]
    assert result.details["failed"] == 2
    assert (bench.get("one.txt"), bench.get("four.txt"), bench.get("there.txt")) == (b"1", b"4", b"x")


@pytest.mark.spec("TLS-058")
async def test_a_batch_that_fails_whole_is_an_error(bench: Bench) -> None:
    bench.folder("d")
    result = await bench.run(
        "workspace_write", {"files": [{"path": "d", "content": "x"}, {"path": "../x", "content": "x"}]}
    )
    assert result.is_error
    assert not result.refused
    assert "Number 1 failed" in result.text
    assert "Number 2 failed" in result.text


@pytest.mark.spec("TLS-053")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"path": "a"},
        {"content": "a"},
        {"path": "a", "content": "x", "files": [{"path": "b", "content": "y"}]},
        {"files": []},
        {"files": [{"path": "b", "content": "y"}] * 21},
        {"files": "b"},
        {"files": ["b"]},
        {"path": 5, "content": "x"},
        {"path": "a", "content": "x", "overwrite": "yes"},
    ],
)
async def test_exactly_one_form_of_the_right_kind(bench: Bench, arguments: dict[str, object]) -> None:
    result = await bench.run("workspace_write", arguments)
    assert result.is_error
    assert isinstance(await bench.judge("workspace_write", arguments), Refuse)
    assert not bench.exists("a")
    assert not bench.exists("b")


@pytest.mark.spec("FLD-068", "PIP-071")
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("final", [True, False])
async def test_a_files_marks_survive_reading_writing_and_editing(
    bench: Bench, mark: bytes, end: str, final: bool
) -> None:
    def stored(*lines: str) -> bytes:
        return mark + (end.join(lines) + (end if final else "")).encode()

    bench.put("f.txt", stored("một", "hai", "ba"))
    read = await bench.run("workspace_read", {"path": "f.txt"})
    assert read.text.encode() == stored("một", "hai", "ba").removeprefix(mark)
    for given in ("một\nhai\nbốn\n", "một\nhai\nbốn", "một\r\nhai\r\nbốn\r\n"):
        written = await bench.run("workspace_write", {"path": "f.txt", "content": given})
        assert not written.is_error
        assert bench.get("f.txt") == stored("một", "hai", "bốn")
        if given.encode() != stored("một", "hai", "bốn").removeprefix(mark):
            assert "marks were kept" in written.text
    edited = await bench.run("workspace_edit", {"path": "f.txt", "old": "một\nhai", "new": "năm\nsáu\nbảy"})
    assert not edited.is_error
    assert bench.get("f.txt") == stored("năm", "sáu", "bảy", "bốn")
    assert ("CRLF" in edited.text) == (end == "\r\n")


@pytest.mark.spec("FLD-022")
async def test_what_was_approved_is_bound_to_the_file_as_it_was(bench: Bench) -> None:
    bench.put("n.txt", "one\ntwo\n")
    await bench.run("workspace_read", {"path": "n.txt"})
    call = {"path": "n.txt", "content": "one\nthree\n"}
    verdict = await bench.judge("workspace_write", call)
    assert isinstance(verdict, NoOpinion)
    assert "-two" in verdict.preview.splitlines()
    assert "+three" in verdict.preview.splitlines()
    bench.put("n.txt", "one\nfrom elsewhere\n")
    changed = await bench.run("workspace_write", call, target_state=verdict.target_state)
    assert changed.is_error
    assert "+from elsewhere" in changed.text.splitlines()
    assert bench.get("n.txt") == b"one\nfrom elsewhere\n"
    bench.put("n.txt", "one\ntwo\n")
    good = await bench.run("workspace_write", call, target_state=verdict.target_state)
    assert not good.is_error


@pytest.mark.spec("FLD-022")
async def test_a_new_file_is_approved_as_new(bench: Bench) -> None:
    call = {"path": "new.txt", "content": "x\n"}
    verdict = await bench.judge("workspace_write", call)
    assert isinstance(verdict, NoOpinion)
    assert "New file" in verdict.preview
    bench.put("new.txt", "somebody was faster\n")
    result = await bench.run("workspace_write", call, target_state=verdict.target_state)
    assert result.is_error
    assert "+somebody was faster" in result.text.splitlines()
    assert bench.get("new.txt") == b"somebody was faster\n"


@pytest.mark.spec("FLD-022")
async def test_a_file_removed_after_the_approval_is_not_written(bench: Bench) -> None:
    bench.put("n.txt", "one\n")
    await bench.run("workspace_read", {"path": "n.txt"})
    verdict = await bench.judge("workspace_write", {"path": "n.txt", "content": "two\n"})
    assert isinstance(verdict, NoOpinion)
    if bench.memory is not None:
        del bench.memory.files[bench.root + "/n.txt"]
    else:
        import os

        os.unlink(bench.root + "/n.txt")
    result = await bench.run(
        "workspace_write", {"path": "n.txt", "content": "two\n"}, target_state=verdict.target_state
    )
    assert result.is_error
    assert "-one" in result.text.splitlines()
    assert not bench.exists("n.txt")


@pytest.mark.spec("TLS-056")
async def test_the_card_of_a_batch_shows_every_file(bench: Bench) -> None:
    bench.put("a.txt", "1\n")
    await bench.run("workspace_read", {"path": "a.txt"})
    files = [{"path": "a.txt", "content": "2\n"}, {"path": "b.txt", "content": "3\n"}]
    verdict = await bench.judge("workspace_write", {"files": files})
    assert isinstance(verdict, NoOpinion)
    assert '"a.txt"' in verdict.preview
    assert '"b.txt"' in verdict.preview


@pytest.mark.spec("TLS-020", "TLS-198")
async def test_nobody_is_asked_about_what_cannot_be(bench: Bench) -> None:
    bench.put("n.txt", "x")
    for arguments in (
        {"path": "../x", "content": "x"},
        {"path": "n.txt", "content": "x"},
        {"path": "a\0b", "content": "x"},
    ):
        assert isinstance(await bench.judge("workspace_write", arguments), Refuse)


@pytest.mark.spec("FLD-022")
async def test_a_binding_that_is_not_ours_is_refused(bench: Bench) -> None:
    result = await bench.run("workspace_write", {"path": "n.txt", "content": "x"}, target_state="[1]")
    assert result.is_error
    assert not bench.exists("n.txt")


@pytest.mark.spec("FLD-022")
async def test_what_could_not_be_written_when_asked_is_not_approved(bench: Bench) -> None:
    bench.put("never-read.txt", "x")
    files = [{"path": "new.txt", "content": "1"}, {"path": "never-read.txt", "content": "2"}]
    verdict = await bench.judge("workspace_write", {"files": files})
    assert isinstance(verdict, NoOpinion)
    assert "Number 2 failed" in verdict.preview
    await bench.run("workspace_read", {"path": "never-read.txt"})
    result = await bench.run("workspace_write", {"files": files}, target_state=verdict.target_state)
    assert "not part of what was approved" in result.text
    assert bench.get("never-read.txt") == b"x"
    assert bench.get("new.txt") == b"1"

"""workspace_list and workspace_read."""

from __future__ import annotations

import pytest

from services.tools.workspace.seen import KEPT_CONTENT_BYTES
from tests.unit.tools.workspace.conftest import Bench


@pytest.mark.spec("TLS-216", "PIP-060", "PIP-138")
async def test_a_folder_is_listed_by_name_with_kinds_and_sizes(bench: Bench) -> None:
    bench.put("b.txt", "12345")
    bench.put("a/inner.txt", "x")
    bench.put("Z.md", "")
    bench.link("l", "b.txt")
    bench.fifo("pipe")
    result = await bench.run("workspace_list", {})
    assert result.text.splitlines() == [
        "Z.md (0 bytes)",
        "a/",
        "b.txt (5 bytes)",
        "l (link)",
        "pipe (special file)",
    ]
    assert result.details == {"path": "", "offset": 0, "entries": 5, "total": 5}
    assert (await bench.run("workspace_list", {"path": "a"})).text == "inner.txt (1 bytes)"


@pytest.mark.spec("TLS-217", "TLS-059", "TLS-061")
async def test_empty_missing_and_file_are_three_answers(bench: Bench) -> None:
    bench.folder("empty")
    bench.put("file.txt", "x")
    empty = await bench.run("workspace_list", {"path": "empty"})
    missing = await bench.run("workspace_list", {"path": "nowhere"})
    file = await bench.run("workspace_list", {"path": "file.txt"})
    assert (empty.is_error, empty.absent) == (False, True)
    assert "empty" in empty.text
    assert missing.is_error
    assert "does not exist" in missing.text
    assert file.is_error
    assert "not a folder" in file.text


async def test_a_workspace_nobody_wrote_to_is_empty(bench: Bench) -> None:
    context = {"workspace": type(bench.grant())(root=bench.root + "-later")}
    assert not (await bench.run("workspace_list", {}, **context)).is_error
    written = await bench.run("workspace_write", {"path": "a/b.txt", "content": "x"}, **context)
    assert not written.is_error
    assert (await bench.run("workspace_list", {}, **context)).text == "a/"


@pytest.mark.spec("FLD-069", "FLD-070")
async def test_a_large_folder_comes_in_pages_that_fit(bench: Bench) -> None:
    for number in range(400):
        bench.put(f"file-{number:04}.txt", "x")
    shown: list[str] = []
    offset = 0
    while True:
        result = await bench.run("workspace_list", {"offset": offset}, output_chars=2000)
        assert len(result.text) <= 2000
        *lines, footer = result.text.splitlines()
        shown += lines
        if f"offset={len(shown)}" not in footer:
            break
        offset = len(shown)
    assert shown == [f"file-{number:04}.txt (1 bytes)" for number in range(400)]
    assert "no more" in footer
    beyond = await bench.run("workspace_list", {"offset": 400})
    assert beyond.is_error
    assert "400" in beyond.text


@pytest.mark.spec("TLS-074")
async def test_names_of_others_stay_on_one_line(bench: Bench) -> None:
    bench.put("two\nlines.txt", "x")
    bench.put("right\u202eto-left", "x")
    text = (await bench.run("workspace_list", {})).text
    assert text.splitlines() == ['"right\\u202eto-left" (1 bytes)', '"two\\nlines.txt" (1 bytes)']


@pytest.mark.spec("TLS-218", "TLS-092", "PIP-020", "PIP-139")
async def test_a_small_file_comes_as_it_is(bench: Bench) -> None:
    content = "“curly” \u00a0\r\nsecond\n\nlast without end"
    bench.put("notes.md", content)
    result = await bench.run("workspace_read", {"path": "notes.md"})
    assert result.text == content
    assert result.details == {
        "path": "notes.md",
        "bytes": len(content.encode()),
        "first_line": 1,
        "last_line": 4,
        "total_lines": 4,
    }


@pytest.mark.spec("TLS-219", "TLS-432")
async def test_a_whole_file_is_left_whole_for_the_ceiling(bench: Bench) -> None:
    content = "x" * 8001
    bench.put("long.txt", content)
    assert (await bench.run("workspace_read", {"path": "long.txt"})).text == content


@pytest.mark.spec("TLS-218", "TLS-220", "TLS-432")
async def test_a_window_says_what_it_shows_and_how_to_go_on(bench: Bench) -> None:
    bench.put("long.txt", "".join(f"line {n}\n" for n in range(1, 5001)))
    first = await bench.run("workspace_read", {"path": "long.txt", "limit": 200})
    heading, *lines = first.text.splitlines()
    assert heading == "Lines 1-200 of 5000 shown; continue with offset=201."
    assert lines == [f"line {n}" for n in range(1, 201)]
    last = await bench.run("workspace_read", {"path": "long.txt", "offset": 4999, "limit": 50})
    assert last.text == "Lines 4999-5000 of 5000 shown.\nline 4999\nline 5000\n"
    whole = await bench.run(
        "workspace_read", {"path": "long.txt", "offset": 1, "limit": 5000}, output_chars=10**6
    )
    assert whole.text.startswith("line 1\n")
    vietnamese = await bench.run("workspace_read", {"path": "long.txt", "limit": 2}, locale="vi")
    assert vietnamese.text.startswith("Đang hiện dòng 1-2 trên tổng 5000; đọc tiếp với offset=3.\n")


@pytest.mark.spec("TLS-432", "FLD-069")
@pytest.mark.parametrize("ceiling", [400, 1000, 1001, 8000])
async def test_windows_that_fit_the_ceiling_join_to_the_file(bench: Bench, ceiling: int) -> None:
    content = "".join(f"{n}: {'y' * (n % 90)}\n" for n in range(1, 300))
    bench.put("long.txt", content)
    joined, offset = "", 1
    while True:
        result = await bench.run(
            "workspace_read", {"path": "long.txt", "offset": offset}, output_chars=ceiling
        )
        assert len(result.text) <= ceiling
        heading, _, text = result.text.partition("\n")
        joined += text
        if "offset=" not in heading:
            break
        offset = int(heading.rpartition("=")[2].rstrip("."))
    assert joined == content


async def test_a_line_that_does_not_fit_is_shown_in_part_and_said(bench: Bench) -> None:
    bench.put("wide.txt", "z" * 5000 + "\nnext\n")
    result = await bench.run(
        "workspace_read", {"path": "wide.txt", "offset": 1, "limit": 1}, output_chars=1000
    )
    assert len(result.text) <= 1000
    assert "too long" in result.text
    assert "offset=2" in result.text


async def test_a_file_too_long_to_be_handed_over_whole_comes_as_lines(bench: Bench) -> None:
    bench.put("huge.txt", "0123456789abcde\n" * 70_000)
    result = await bench.run("workspace_read", {"path": "huge.txt"})
    assert len(result.text) <= 8000
    assert "of 70000 shown; continue with offset=" in result.text.splitlines()[0]


@pytest.mark.spec("TLS-220", "TLS-221", "PIP-050")
async def test_offsets_out_of_range_name_the_limit(bench: Bench) -> None:
    bench.put("a.txt", "1\n2\n3\n")
    beyond = await bench.run("workspace_read", {"path": "a.txt", "offset": 200})
    assert beyond.is_error
    assert 'Offset 200 is beyond the end of the file "a.txt" (3 lines)' in beyond.text
    for arguments in ({"offset": 0}, {"offset": -1}, {"limit": 0}, {"limit": "5"}, {"offset": True}):
        wrong = await bench.run("workspace_read", {"path": "a.txt", **arguments})
        assert wrong.is_error
        assert next(iter(arguments)) in wrong.text


@pytest.mark.spec("TLS-222", "FLD-068")
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"%PDF-1.7\n\xe2\xe3", "a PDF"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a picture"),
        (b"abc\0def", "binary data"),
        ("caf\xe9".encode("latin-1"), "another encoding"),
        ("x".encode("utf-16"), "UTF-16"),
        (b"fine until the end \xe1\xba", "another encoding"),
        (b"\x1f\x8b\x08\0\0", "an archive"),
    ],
)
async def test_what_is_no_text_is_refused_by_its_kind(bench: Bench, content: bytes, kind: str) -> None:
    bench.put("thing.bin", content)
    result = await bench.run("workspace_read", {"path": "thing.bin"})
    assert result.is_error
    assert kind in result.text
    assert bench.get("thing.bin") == content


@pytest.mark.spec("TLS-222")
async def test_a_byte_order_mark_is_dropped_on_reading(bench: Bench) -> None:
    bench.put("bom.txt", b"\xef\xbb\xbfhello\n")
    assert (await bench.run("workspace_read", {"path": "bom.txt"})).text == "hello\n"


@pytest.mark.spec("TLS-223", "TLS-060", "TLS-061")
async def test_an_empty_file_is_said_to_be_empty(bench: Bench) -> None:
    bench.put("empty.txt", b"")
    result = await bench.run("workspace_read", {"path": "empty.txt"})
    assert (result.is_error, result.absent) == (False, True)
    assert "empty" in result.text


async def test_reading_a_folder_a_pipe_or_nothing(bench: Bench) -> None:
    bench.folder("d")
    bench.fifo("p")
    for path, words in (
        ("d", "is a folder"),
        ("p", "no regular file"),
        ("x", "does not exist"),
        ("d/", "folder"),
    ):
        result = await bench.run("workspace_read", {"path": path})
        assert result.is_error
        assert words in result.text


async def test_multibyte_characters_over_chunk_borders(bench: Bench) -> None:
    content = "đây là tiếng Việt 🌏\n" * 50
    bench.put("vi.txt", content)
    assert (await bench.run("workspace_read", {"path": "vi.txt"})).text == content


async def test_a_file_larger_than_what_is_kept_of_it_counts_as_read(bench: Bench) -> None:
    bench.put("big.txt", "x" * (KEPT_CONTENT_BYTES + 1))
    await bench.run("workspace_read", {"path": "big.txt"})
    result = await bench.run("workspace_write", {"path": "big.txt", "content": "small"})
    assert not result.is_error

"""What only a real disk does: races, special files, rights, huge trees, interrupted writes."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest

from services.common.toolhost.contract import WorkspaceGrant
from services.tools.workspace.disk import beneath, changing, listing, places, reading, walking
from services.tools.workspace.disk.beneath import Swapped, open_beneath, open_directory, step_by_step
from services.tools.workspace.disk.changing import DiskChanging
from services.tools.workspace.disk.path_queue import PathQueue
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.interfaces import Target
from tests.unit.tools.workspace.conftest import Bench


@pytest.mark.spec("TLS-199", "PIP-061")
@pytest.mark.parametrize("opening", [open_beneath, step_by_step])
def test_opening_follows_no_link_anywhere(tmp_path: Path, opening: object) -> None:
    (tmp_path / "ws" / "d").mkdir(parents=True)
    (tmp_path / "ws" / "d" / "f").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    (tmp_path / "ws" / "file-link").symlink_to("../secret")
    (tmp_path / "ws" / "dir-link").symlink_to("d")
    (tmp_path / "ws" / "up").symlink_to("..")
    root = open_directory(str(tmp_path / "ws"))
    try:
        descriptor = opening(root, "d/f", os.O_RDONLY)  # type: ignore[operator]
        assert os.read(descriptor, 10) == b"inside"
        os.close(descriptor)
        for path in ("file-link", "dir-link/f", "up/secret", "d/../../secret", "../secret"):
            with pytest.raises(Swapped):
                opening(root, path, os.O_RDONLY)  # type: ignore[operator]
        with pytest.raises(FileNotFoundError):
            opening(root, "d/none", os.O_RDONLY)  # type: ignore[operator]
    finally:
        os.close(root)


async def test_without_openat2_the_walls_are_the_same(disk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSYS, "no such call")

    monkeypatch.setattr(beneath, "_by_openat2", refuse)
    disk.put("a/b.txt", "hello")
    disk.link("out", "/etc")
    assert (await disk.run("workspace_read", {"path": "a/b.txt"})).text == "hello"
    assert not (await disk.run("workspace_write", {"path": "c/d.txt", "content": "x"})).is_error
    assert (await disk.run("workspace_read", {"path": "out/passwd"})).refused
    assert "a/b.txt" in (await disk.run("workspace_glob", {"pattern": "**/*"})).text


@pytest.mark.spec("TLS-199", "PIP-061")
async def test_a_component_swapped_after_the_check_is_refused(
    disk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between judging and opening, the folder becomes a link out."""
    disk.put("d/f.txt", "inside")
    secret = Path(disk.root).parent / "secret"
    secret.mkdir()
    (secret / "f.txt").write_text("outside")
    judged = places.locate

    def judge_then_swap(*args: object, **kwargs: object) -> places.Place:
        place = judged(*args, **kwargs)  # type: ignore[arg-type]
        folder = Path(disk.root) / "d"
        if folder.is_dir() and not folder.is_symlink():
            folder.rename(Path(disk.root) / "was-d")
            folder.symlink_to(secret)
        return place

    for module in (reading, changing, listing):
        monkeypatch.setattr(module, "locate", judge_then_swap)
    for tool, arguments in (
        ("workspace_read", {"path": "d/f.txt"}),
        ("workspace_write", {"path": "d/f.txt", "content": "x", "overwrite": True}),
        ("workspace_write", {"path": "d/new.txt", "content": "x"}),
        ("workspace_list", {"path": "d"}),
    ):
        (Path(disk.root) / "d").unlink() if (Path(disk.root) / "d").is_symlink() else None
        if (Path(disk.root) / "was-d").exists():
            (Path(disk.root) / "was-d").rename(Path(disk.root) / "d")
        result = await disk.run(tool, arguments)
        assert result.is_error, (tool, arguments)
        assert "outside" not in result.text.replace("leads out", "")
    assert (secret / "f.txt").read_text() == "outside"
    assert not (secret / "new.txt").exists()


async def test_swapping_in_a_hurry_never_gets_out(disk: Bench) -> None:
    """A link that flips between inside and outside while it is read many times."""
    secret = Path(disk.root).parent / "secret"
    secret.mkdir()
    (secret / "f.txt").write_text("OUTSIDE")
    disk.put("good/f.txt", "inside")
    link, stop = Path(disk.root) / "d", threading.Event()

    def flip() -> None:
        while not stop.is_set():
            for target in (Path(disk.root) / "good", secret):
                fresh = Path(disk.root) / "fresh"
                fresh.symlink_to(target)
                fresh.rename(link)

    flipper = threading.Thread(target=flip)
    flipper.start()
    try:
        answers = {(await disk.run("workspace_read", {"path": "d/f.txt"})).text for _ in range(150)}
        grep = await disk.run("workspace_grep", {"pattern": "OUTSIDE"})
    finally:
        stop.set()
        flipper.join()
    assert not any("OUTSIDE" in answer for answer in answers)
    assert grep.absent


@pytest.mark.spec("TLS-200")
async def test_special_files_are_looked_at_and_never_opened(disk: Bench) -> None:
    disk.fifo("pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        cwd = os.getcwd()
        os.chdir(disk.root)
        try:
            sock.bind("sock")
        finally:
            os.chdir(cwd)
        made_device = True
        try:
            os.mknod(f"{disk.root}/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            made_device = False
        for path in ("pipe", "sock", *(["null"] if made_device else [])):
            for tool, arguments in (
                ("workspace_read", {"path": path}),
                ("workspace_write", {"path": path, "content": "x", "overwrite": True}),
                ("workspace_edit", {"path": path, "old": "a", "new": "b"}),
                ("workspace_grep", {"pattern": "x", "path": path}),
            ):
                result = await asyncio.wait_for(disk.run(tool, arguments), 20)
                assert result.is_error, (tool, path)
                assert "no regular file" in result.text, (tool, path)
        assert (await asyncio.wait_for(disk.run("workspace_grep", {"pattern": "x"}), 20)).absent
    assert stat.S_ISFIFO(os.stat(f"{disk.root}/pipe").st_mode)


@pytest.mark.spec("FLD-054", "TLS-225")
async def test_new_files_belong_to_their_folder_and_old_ones_stay_as_they_were(disk: Bench) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving files away needs root")
    os.chown(disk.root, 12345, 23456)
    await disk.run("workspace_write", {"path": "new/deep/f.txt", "content": "x"})
    for path, mode in (("new", 0o2775), ("new/deep", 0o2775), ("new/deep/f.txt", 0o664)):
        status = os.stat(f"{disk.root}/{path}")
        assert stat.S_IMODE(status.st_mode) == mode, path
        assert (status.st_uid, status.st_gid) == (12345, 23456), path
    disk.put("old.sh", "#!/bin/sh\n")
    os.chmod(f"{disk.root}/old.sh", 0o4750)
    os.chown(f"{disk.root}/old.sh", 777, 888)
    os.chmod(f"{disk.root}/old.sh", 0o4750)
    await disk.run("workspace_edit", {"path": "old.sh", "old": "/bin/sh", "new": "/bin/bash"})
    status = os.stat(f"{disk.root}/old.sh")
    assert stat.S_IMODE(status.st_mode) == 0o750
    assert (status.st_uid, status.st_gid) == (777, 888)
    context = {"workspace": disk.grant(umask=0o027)}
    await disk.run("workspace_write", {"path": "closed/f.txt", "content": "x"}, **context)
    assert stat.S_IMODE(os.stat(f"{disk.root}/closed").st_mode) == 0o2750
    assert stat.S_IMODE(os.stat(f"{disk.root}/closed/f.txt").st_mode) == 0o640


async def test_a_write_protected_file_is_left_alone(disk: Bench) -> None:
    disk.put("f.txt", "x")
    os.chmod(f"{disk.root}/f.txt", 0o444)
    for tool, arguments in (
        ("workspace_write", {"path": "f.txt", "content": "y", "overwrite": True}),
        ("workspace_edit", {"path": "f.txt", "old": "x", "new": "y"}),
    ):
        result = await disk.run(tool, arguments)
        assert result.is_error
        assert "write-protected" in result.text
    assert disk.get("f.txt") == b"x"


@pytest.mark.spec("TLS-225", "PIP-050")
async def test_a_disk_that_fills_up_leaves_the_old_file(disk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.put("f.txt", "old")

    def full(descriptor: int, content: bytes) -> None:
        os.write(descriptor, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(changing, "_write_all", full)
    result = await disk.run("workspace_write", {"path": "f.txt", "content": "new text", "overwrite": True})
    assert result.is_error
    assert "no room left" in result.text
    assert disk.get("f.txt") == b"old"
    assert os.listdir(disk.root) == ["f.txt"]


async def test_what_a_killed_write_left_is_cleared_by_the_next_one(disk: Bench) -> None:
    import hashlib

    left = f".crew-{hashlib.sha256(b'f.txt').hexdigest()[:16]}.part"
    disk.put(left, "half")
    disk.put("f.txt", "old")
    await disk.run("workspace_write", {"path": "f.txt", "content": "new", "overwrite": True})
    assert os.listdir(disk.root) == ["f.txt"]
    assert disk.get("f.txt") == b"new"


@pytest.mark.spec("PIP-035")
async def test_two_edits_of_one_file_at_once_both_land(disk: Bench) -> None:
    disk.put("f.txt", "".join(f"place {n}.\n" for n in range(30)))
    disk.link("alias.txt", "f.txt")
    edits = [
        disk.run(
            "workspace_edit",
            {"path": ("f.txt", "alias.txt", "./f.txt")[n % 3], "old": f"place {n}.", "new": f"done {n}."},
            conversation_id=f"c{n}",
        )
        for n in range(30)
    ]
    results = await asyncio.gather(*edits)
    assert not any(result.is_error for result in results)
    assert disk.get("f.txt").decode() == "".join(f"done {n}.\n" for n in range(30))


@pytest.mark.spec("PIP-035")
async def test_files_do_not_wait_for_each_other(tmp_path: Path) -> None:
    queue, released = PathQueue(), threading.Event()
    slow = asyncio.create_task(queue.run("a", lambda: released.wait(20)))
    assert await asyncio.wait_for(queue.run("b", lambda: 1), 10) == 1
    released.set()
    assert await slow


@pytest.mark.spec("PIP-135", "PIP-136")
async def test_a_cancelled_write_keeps_its_place_until_it_has_ended(
    disk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()
    write_all = changing._write_all
    order: list[str] = []

    def slowly(descriptor: int, content: bytes) -> None:
        order.append(f"begin {content[:1].decode()}")
        if content.startswith(b"a"):
            began.set()
            go_on.wait(20)
        write_all(descriptor, content)
        order.append(f"end {content[:1].decode()}")

    monkeypatch.setattr(changing, "_write_all", slowly)
    first = asyncio.create_task(disk.run("workspace_write", {"path": "f.txt", "content": "a" * 100_000}))
    await asyncio.to_thread(began.wait, 20)
    second = asyncio.create_task(
        disk.run("workspace_write", {"path": "f.txt", "content": "b" * 100_000, "overwrite": True})
    )
    first.cancel()
    await asyncio.sleep(0.1)
    assert order == ["begin a"]
    go_on.set()
    result = await first
    assert result.outcome == "done"
    assert "Created" in result.text
    await second
    content = disk.get("f.txt")
    assert order in (["begin a", "end a"], ["begin a", "end a", "begin b", "end b"])
    assert content in (b"a" * 100_000, b"b" * 100_000)


@pytest.mark.spec("PIP-136", "PIP-135")
async def test_a_write_cancelled_before_its_turn_did_not_start(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    queue, released = PathQueue(), threading.Event()
    files = DiskChanging(queue)
    holding = asyncio.create_task(queue.run(f"{root}/f.txt", lambda: released.wait(20)))
    await asyncio.sleep(0.05)
    grant = WorkspaceGrant(str(root))
    waiting = asyncio.create_task(files.change(grant, "f.txt", lambda _: b"x"))
    await asyncio.sleep(0.1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    released.set()
    await holding
    assert not (root / "f.txt").exists()
    assert queue._lines == {}


@pytest.mark.spec("PIP-136")
async def test_a_cancelled_read_says_what_was_cancelled(disk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.put("src/main.ts", "x")
    began = threading.Event()

    def slow(_: object, __: object, ___: object, ____: object, stop: threading.Event) -> None:
        began.set()
        stop.wait(20)
        raise reading.Stopped

    monkeypatch.setattr(reading.DiskReading, "_read", slow)
    task = asyncio.create_task(disk.run("workspace_read", {"path": "src/main.ts"}))
    await asyncio.to_thread(began.wait, 20)
    task.cancel()
    result = await task
    assert (result.is_error, result.outcome) == (True, "not_started")
    assert result.text.startswith('Reading "src/main.ts" was cancelled')


async def test_a_file_changed_by_others_between_look_and_rename_is_not_lost(
    disk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program outside the queue writes in the middle: the edit is made anew on what it left."""
    disk.put("f.txt", "one\ntwo\n")
    still, interfered = changing._still, []

    def interfere(*args: object) -> bool:
        if not interfered:
            interfered.append(True)
            Path(disk.root, "f.txt").write_text("one\ntwo\nthree\n")
        return still(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(changing, "_still", interfere)
    result = await disk.run("workspace_edit", {"path": "f.txt", "old": "one", "new": "ONE"})
    assert not result.is_error
    assert disk.get("f.txt") == b"ONE\ntwo\nthree\n"


async def test_a_gigabyte_that_is_not_there_costs_nothing(disk: Bench) -> None:
    with open(f"{disk.root}/sparse", "wb") as file:
        file.truncate(1024**3)
    disk.put("small.txt", "needle")
    began = time.monotonic()
    read = await disk.run("workspace_read", {"path": "sparse"})
    assert read.is_error
    assert "binary" in read.text
    grep = await disk.run("workspace_grep", {"pattern": "needle"})
    assert grep.text.splitlines()[0] == "small.txt:1: needle"
    assert "1 files over 32 MB" in grep.text
    assert "sparse (1073741824 bytes)" in (await disk.run("workspace_list", {})).text
    refused = await disk.run("workspace_edit", {"path": "sparse", "old": "a", "new": "b"})
    assert refused.is_error
    assert time.monotonic() - began < 60


async def test_a_gigabyte_of_text_is_read_by_lines(disk: Bench) -> None:
    line = b"x" * 63 + b"\n"
    with open(f"{disk.root}/big.txt", "wb") as file:
        for _ in range(300):
            file.write(line * 16384)
    result = await disk.run("workspace_read", {"path": "big.txt", "offset": 1_000_001, "limit": 2})
    assert result.text.splitlines()[0] == (
        "Lines 1000001-1000002 of more than 4194304 shown; continue with offset=1000003."
    )
    assert len(result.text) < 300


@pytest.mark.slow
@pytest.mark.spec("FLD-070")
async def test_a_folder_of_many_names_is_bounded(disk: Bench) -> None:
    folder = os.open(disk.root, os.O_RDONLY)
    for number in range(100_000):
        os.close(os.open(f"f{number:06}", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder))
    os.close(folder)
    listed = await disk.run("workspace_list", {})
    assert len(listed.text) <= 8000
    assert "of 100000 shown" in listed.text.splitlines()[-1]
    globbed = await disk.run("workspace_glob", {"pattern": "f0999*"})
    assert globbed.text.splitlines()[0] == "f099900"
    assert "100 in all" in globbed.text


@pytest.mark.spec("FLD-070", "TLS-238")
async def test_running_out_of_time_gives_what_was_found(disk: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        disk.put(f"d{number:02}/f.txt", "needle")
    over = walking.TreeWalk._over
    asked = 0

    def soon(walk: walking.TreeWalk) -> bool:
        nonlocal asked
        asked += 1
        walk._ends = 0.0 if asked > 25 else walk._ends
        return over(walk)

    monkeypatch.setattr(walking.TreeWalk, "_over", soon)
    result = await disk.run("workspace_glob", {"pattern": "**/*.txt"})
    assert not result.is_error
    assert result.details["stopped"] is True
    found = [line for line in result.text.splitlines() if line.startswith("d")]
    left = next(line for line in result.text.splitlines() if "stopped after 30 s" in line)
    assert 0 < len(found) < 30
    assert f"{30 - len(found)} or more folders" in left


@pytest.mark.spec("FLD-070")
async def test_more_names_than_may_be_held_are_left_and_said(
    disk: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "HELD_NAMES", 50)
    for number in range(80):
        disk.put(f"f{number}", "x")
    result = await disk.run("workspace_glob", {"pattern": "*"})
    assert "could not be looked into" in result.text


async def test_a_tree_deeper_than_there_are_descriptors(disk: Bench) -> None:
    folder = os.open(disk.root, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("deep.txt", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder))
    os.close(folder)
    await disk.run("workspace_read", {"path": "x"})  # opens what is kept open
    open_before = len(os.listdir("/proc/self/fd"))
    try:
        result = await disk.run("workspace_glob", {"pattern": "**/*.txt"}, output_chars=20_000)
        assert "deep.txt" in result.text
        assert len(os.listdir("/proc/self/fd")) == open_before
    finally:
        # Deeper than Python's own way of removing a tree can go.
        subprocess.run(["rm", "-rf", f"{disk.root}/d"], check=True)


async def test_no_descriptor_is_left_open(disk: Bench) -> None:
    for number in range(300):
        disk.put(f"d{number % 7}/f{number}.txt", "needle\n")
    await disk.run("workspace_read", {"path": "d1/f1.txt"})  # opens what is kept open
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await disk.run("workspace_grep", {"pattern": "needle"})
        await disk.run("workspace_grep", {"pattern": "nothing"})
        await disk.run("workspace_glob", {"pattern": "**/*"})
        await disk.run("workspace_list", {"path": "d1"})
        await disk.run("workspace_read", {"path": "d1/f1.txt"})
        await disk.run("workspace_write", {"path": "d1/new.txt", "content": "x", "overwrite": True})
        await disk.run("workspace_read", {"path": "d1"})
    assert len(os.listdir("/proc/self/fd")) == before


async def test_what_make_raises_goes_through_and_nothing_is_written(tmp_path: Path) -> None:
    class Refused(Exception):
        pass

    def refuse(_: Target) -> bytes:
        raise Refused

    (tmp_path / "f").write_text("x")
    files = DiskChanging(PathQueue())
    with pytest.raises(Refused):
        await files.change(WorkspaceGrant(str(tmp_path)), "f", refuse)
    with pytest.raises(WorkspaceFault):
        await files.change(WorkspaceGrant(str(tmp_path)), "../f", lambda _: b"y")
    assert await files.change(WorkspaceGrant(str(tmp_path)), "new/f", lambda _: None) is None
    assert sorted(os.listdir(tmp_path)) == ["f"]

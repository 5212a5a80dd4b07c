"""What stops a start before anything is started."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.cli.home import Layout, check_disk, check_port, check_writable, locked
from services.common.start import StartError

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount and to change users")


def mounted(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "crew-test", str(folder)], check=False)
    if done.returncode != 0:
        pytest.skip("this machine lets nobody mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "small", "size=100m")


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "ro", "size=1m,ro")


@AS_ROOT
def test_a_disk_with_too_little_room_is_refused_with_both_numbers(small_disk: Path) -> None:
    with pytest.raises(StartError, match=r"Only (99|100) MB are free .* 200 MB are needed"):
        check_disk(small_disk)


@AS_ROOT
@pytest.mark.spec("FLD-045")
def test_a_read_only_mount_is_told_as_one(read_only: Path) -> None:
    with pytest.raises(StartError, match=f"{read_only} is on a read-only file system"):
        check_writable(read_only)


@AS_ROOT
@pytest.mark.parametrize("uid", [1000, 1001, 501])
@pytest.mark.spec("FLD-045")
def test_a_folder_of_root_is_refused_with_both_ids_and_the_command_and_then_works(
    tmp_path: Path, uid: int
) -> None:
    # Pytest's folders are closed to others; the walk to the mount is open on a real machine.
    home = Path("/tmp") / f"crew-test-{os.getpid()}-{uid}"
    home.mkdir(mode=0o755)
    check = (
        "import os, sys; from pathlib import Path; from services.cli.home import check_writable;"
        f"os.setgroups([]); os.setgid({uid}); os.setuid({uid})\ntry: check_writable(Path({str(home)!r}))\n"
        "except Exception as error: print(error); sys.exit(1)"
    )
    try:
        done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stderr
        assert str(home) in done.stdout
        assert "0:0" in done.stdout
        command = f"sudo chown -R {uid}:{uid} '{home}'"
        assert f"Run: {command}" in done.stdout
        subprocess.run(command.removeprefix("sudo "), shell=True, check=True)
        done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    finally:
        home.rmdir()


def test_a_file_where_the_home_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StartError, match="cannot be used"):
        check_writable(tmp_path / "home")


def test_ports() -> None:
    check_port("127.0.0.1", 0, "--port")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=rf"Port {port} on 127\.0\.0\.1 .* --port"):
            check_port("127.0.0.1", port, "--port")
    with pytest.raises(StartError, match=r"Cannot listen on 192\.0\.2\.1:0"):
        check_port("192.0.2.1", 0, "--port")
    with pytest.raises(StartError, match="Cannot listen"):
        check_port("no.such.name.invalid", 0, "--port")


def test_a_home_is_held_once_and_given_back(tmp_path: Path) -> None:
    layout = Layout(tmp_path, tmp_path / "run")
    with locked(layout), pytest.raises(StartError, match=f"process {os.getpid()}"), locked(layout):
        pass
    with locked(layout):
        pass


def test_a_folder_of_sockets_that_somebody_else_prepared_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "run").symlink_to(elsewhere)
    with pytest.raises(StartError, match="belongs to another user"):
        Layout(tmp_path / "home", tmp_path / "run").prepare_run()
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o777)
    Layout(tmp_path / "home", open_to_all).prepare_run()
    assert open_to_all.stat().st_mode & 0o777 == 0o700


def test_the_path_of_sockets_stays_short(tmp_path: Path) -> None:
    layout = Layout.from_environment({"MY_AGENT_HOME": str(tmp_path / ("x" * 200))})
    assert len(layout.socket("orchestrator")) < 107


def test_a_restore_that_did_not_end_stops_a_start(tmp_path: Path) -> None:
    (tmp_path / "home" / ".restoring").mkdir(parents=True)
    with pytest.raises(StartError, match="crew restore"):
        Layout(tmp_path / "home", tmp_path / "run").prepare()


@pytest.mark.spec("AGT-001")
def test_the_home_is_found_by_its_variable_with_the_tilde_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Layout.from_environment({}).home == tmp_path / ".my-agent-crew"
    assert Layout.from_environment({"MY_AGENT_HOME": "~/crew"}).home == tmp_path / "crew"

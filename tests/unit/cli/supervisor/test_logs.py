"""Log files that do not grow for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.supervisor.logs import RotatingFile


@pytest.mark.spec("FLD-052")
def test_a_full_file_is_moved_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    file = RotatingFile(path, max_bytes=100, kept=5)
    for number in range(100):
        file.write(f"line {number:03}\n".encode())
    names = sorted(entry.name for entry in tmp_path.iterdir())
    assert names == ["x.log", "x.log.1", "x.log.2", "x.log.3", "x.log.4"]
    assert all(entry.stat().st_size <= 100 for entry in tmp_path.iterdir())
    kept = "".join((tmp_path / name).read_text() for name in reversed(names)).splitlines()
    assert kept == [f"line {number:03}" for number in range(100 - len(kept), 100)]
    assert file.tail(1) == ["line 099"]


def test_an_existing_file_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("before\n")
    RotatingFile(path).write(b"after\n")
    assert path.read_text() == "before\nafter\n"
    assert RotatingFile(tmp_path / "none.log").tail(3) == []


def test_a_folder_that_vanished_loses_lines_and_raises_nothing(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "gone" / "x.log")
    file.write(b"lost\n")
    (tmp_path / "gone").mkdir()
    file.write(b"kept\n")
    assert (tmp_path / "gone" / "x.log").read_text() == "kept\n"

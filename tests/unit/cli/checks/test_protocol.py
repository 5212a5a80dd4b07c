"""What may change in the contracts within crew.v1."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from services.cli.checks import protocol

ROOT = Path(__file__).parents[4]
QUEUED = "message Queued {\n  int64 item_id = 1;\n  string kind = 2;\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository whose main branch holds the contracts as they are."""
    shutil.copytree(ROOT / "protos", tmp_path / "protos")
    shutil.copy(ROOT / "buf.yaml", tmp_path)
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    for command in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "contracts")):
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True, timeout=60)
    return tmp_path


@pytest.mark.spec("GTW-281")
@pytest.mark.parametrize(
    ("after", "kept"),
    [
        (QUEUED, True),
        (QUEUED + "  string added = 9;\n", True),
        ("message Queued {\n  int64 item_id = 1;\n", False),
        (QUEUED.replace("kind = 2", "kind = 7"), False),
        (QUEUED.replace("string kind", "int32 kind"), False),
        (QUEUED.replace("kind", "sort"), False),
    ],
)
def test_fields_are_only_added(project: Path, after: str, kept: bool) -> None:
    events = project / "protos" / "crew" / "v1" / "events.proto"
    text = events.read_text()
    assert QUEUED in text
    events.write_text(text.replace(QUEUED, after))
    assert protocol.breaking(project) is kept

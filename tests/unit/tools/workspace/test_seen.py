"""What conversations know of files: over a restart, within bounds, until they are gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.tools.workspace import seen as module
from services.tools.workspace.seen import SeenFiles


@pytest.mark.spec("FLD-067")
async def test_known_files_outlive_a_restart_and_end_with_the_conversation(tmp_path: Path) -> None:
    seen = SeenFiles(tmp_path / "s" / "seen.sqlite")
    await seen.saw("c1", "/ws/a.txt", "hash", b"content")
    await seen.saw("c2", "/ws/a.txt", "older")
    await seen.close()
    seen = SeenFiles(tmp_path / "s" / "seen.sqlite")
    assert await seen.state_of("c1", "/ws/a.txt") == "hash"
    assert await seen.state_of("c1", "/WS/A.txt") == "hash"
    assert await seen.state_of("c1", "/ws/b.txt") is None
    assert await seen.content_of("hash") == b"content"
    assert await seen.content_of("older") is None
    await seen.release("agent", "c1")
    assert await seen.state_of("c1", "/ws/a.txt") == "hash"
    await seen.release("conversation", "c1")
    assert await seen.state_of("c1", "/ws/a.txt") is None
    assert await seen.state_of("c2", "/ws/a.txt") == "older"
    await seen.close()


async def test_what_is_kept_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_FILES", 10)
    monkeypatch.setattr(module, "KEPT_CONTENTS_BYTES", 5_000)
    monkeypatch.setattr(module, "_PRUNED_EVERY", 1)
    seen = SeenFiles(tmp_path / "seen.sqlite")
    for n in range(30):
        await seen.saw("c", f"/ws/{n}", f"hash{n}", os.urandom(1000))
    known = [await seen.state_of("c", f"/ws/{n}") is not None for n in range(30)]
    kept = [await seen.content_of(f"hash{n}") is not None for n in range(30)]
    assert known == [False] * 20 + [True] * 10
    assert 3 <= sum(kept) <= 5
    assert kept[-1]
    await seen.saw("c", "/ws/huge", "huge", b"x" * (module.KEPT_CONTENT_BYTES + 1))
    await seen.keep("huge", b"x" * (module.KEPT_CONTENT_BYTES + 1))
    assert await seen.content_of("huge") is None
    await seen.close()


async def test_a_state_that_cannot_be_kept_fails_no_call(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("no folder")
    seen = SeenFiles(tmp_path / "s" / "seen.sqlite")
    await seen.saw("c", "/ws/a", "hash", b"x")
    await seen.keep("hash", b"x")
    assert await seen.state_of("c", "/ws/a") is None
    assert await seen.content_of("hash") is None
    await seen.close()

"""A million files: searches stay within their memory and time, and say what they left out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDERS, FILES = 1000, 1000
CROWDED = 200_000
# More than this over the process as it was before: a walk that holds the tree.
GROWTH_BYTES = 64 * 1024**2
# Links to one file: a file system takes no more.
_LINKS = 60_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

_RUN = """
import asyncio, json, resource, sys, time
from pathlib import Path
from services.common.toolhost.contract import CallContext, Run, WorkspaceGrant
from services.tools.workspace.disk.path_queue import PathQueue
from services.tools.workspace.on_disk import workspace_tools
from services.tools.workspace.seen import SeenFiles

async def no_progress(text, details=None): pass

async def main(root, state, calls):
    tools = {t.name: t for t in workspace_tools(SeenFiles(Path(state)), PathQueue())}
    answers = []
    for name, arguments in calls:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.monotonic()
        context = CallContext("a", "c", "r", "k", WorkspaceGrant(root=root))
        result = await tools[name].run(Run(context, arguments, no_progress))
        answers.append({"text": result.text, "seconds": time.monotonic() - began,
            "growth": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024})
    print(json.dumps(answers))

asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
"""


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    """Links to a few files: as many names as a million files and hardly any space."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "ws"
        root.mkdir()
        made = 0
        source = ""
        for number in range(FOLDERS):
            (root / f"d{number:03}").mkdir()
            below = os.open(root / f"d{number:03}", os.O_RDONLY)
            for name in range(FILES):
                if made % _LINKS == 0:
                    source = str(root / f"d{number:03}" / f"f{name:03}.txt")
                    Path(source).write_text("hay\n")
                else:
                    os.link(source, f"f{name:03}.txt", dst_dir_fd=below)
                made += 1
            os.close(below)
        (root / "d999" / "z-last.txt").write_text("needle\n")
        crowded = root / "crowded"
        crowded.mkdir()
        below = os.open(crowded, os.O_RDONLY)
        for name in range(CROWDED):
            if name % _LINKS == 0:
                source = str(crowded / f"c{name:06}")
                Path(source).write_text("hay\n")
            else:
                os.link(source, f"c{name:06}", dst_dir_fd=below)
        os.close(below)
        try:
            yield root
        finally:
            subprocess.run(["rm", "-rf", str(root)], check=True)


def answers(tree: Path, *calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(tree), str(tree.parent / "seen.sqlite"), json.dumps(calls)],
        capture_output=True,
        check=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": "."},
    )
    result: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.spec("FLD-070", "TLS-238")
def test_searching_a_million_files_is_bounded(tree: Path) -> None:
    whole_glob, last_glob, grep, near = answers(
        tree,
        ("workspace_glob", {"pattern": "**/z-*.txt"}),
        ("workspace_glob", {"pattern": "d999/z*"}),
        ("workspace_grep", {"pattern": "needle"}),
        ("workspace_grep", {"pattern": "needle", "path": "d999"}),
    )
    for answer in (whole_glob, last_glob, grep, near):
        assert len(answer["text"]) <= 8000
        assert answer["seconds"] < 60
        assert answer["growth"] < GROWTH_BYTES
    assert last_glob["text"].splitlines()[0] == "d999/z-last.txt"
    assert near["text"].splitlines()[0] == "d999/z-last.txt:1: needle"
    for answer, found in ((whole_glob, "d999/z-last.txt"), (grep, "d999/z-last.txt:1: needle")):
        assert found in answer["text"] or "stopped after 30 s" in answer["text"]
    if "stopped" in grep["text"]:
        assert int(grep["text"].split("; ")[1].split()[0]) > 0


@pytest.mark.spec("FLD-070")
def test_a_folder_of_two_hundred_thousand_names_is_bounded(tree: Path) -> None:
    listed, later, globbed = answers(
        tree,
        ("workspace_list", {"path": "crowded"}),
        ("workspace_list", {"path": "crowded", "offset": CROWDED - 5}),
        ("workspace_glob", {"pattern": "crowded/c19999?"}),
    )
    for answer in (listed, later, globbed):
        assert len(answer["text"]) <= 8000
        assert answer["seconds"] < 60
        assert answer["growth"] < GROWTH_BYTES
    assert f"of {CROWDED} shown" in listed["text"]
    assert later["text"].splitlines()[0] == f"c{CROWDED - 5:06} (4 bytes)"
    assert globbed["text"].splitlines()[:10] == [f"crowded/c19999{n}" for n in range(10)]

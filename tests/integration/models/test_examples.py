"""The examples of docs/models.md work as they stand, and so does the server as a process."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import httpx

from tests.fixtures.model_server import Script

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "models.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


async def test_the_python_example_runs() -> None:
    (example,) = [block for block in blocks("python") if "asyncio.run" in block]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", example, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    assert out.decode() == "Hello there\nfake:echo, 0.0 USD\n"


async def test_the_script_example_is_played_by_the_server_as_a_process(tmp_path: Path) -> None:
    (script,) = blocks("json")
    assert len(Script.read(json.loads(script)).turns) == 2
    path = tmp_path / "script.json"
    path.write_text(script, "utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.fixtures.model_server",
        "--script",
        str(path),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        address = (await asyncio.wait_for(process.stdout.readline(), 60)).decode().strip()
        async with httpx.AsyncClient(base_url=address, timeout=30) as client:
            body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
            answers = [(await client.post("/chat/completions", json=body)).text for _ in range(3)]
        assert "workspace_list" in answers[0]
        assert '"Don' in answers[1]
        assert '"Hel' in answers[2]
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 30) == 0

"""The record that keeps a call from acting twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from services.common.toolhost import once
from services.common.toolhost.contract import text_result
from services.common.toolhost.once import CallLedger, Claimed, Done, Reused, Unfinished


async def test_the_life_of_a_call(tmp_path: Path) -> None:
    ledger = CallLedger(tmp_path / "s" / "calls.sqlite")
    assert await ledger.claim("a", "t", "{}") == Claimed()
    assert await ledger.claim("a", "t", "{}") == Unfinished()
    assert await ledger.claim("a", "u", "{}") == Reused()
    assert await ledger.claim("a", "t", '{"x":1}') == Reused()
    result = text_result("ế" * 100, details={"n": 1}, is_error=True, outcome="unknown")
    await ledger.close_call("a", result)
    assert await ledger.claim("a", "t", "{}") == Done(result)
    await ledger.close()
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "s" / "calls.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.spec("PIP-090")
async def test_kept_for_a_day_and_no_longer(tmp_path: Path) -> None:
    now = 1_000_000.0
    ledger = CallLedger(tmp_path / "calls.sqlite", clock=lambda: now)
    await ledger.claim("a", "t", "{}")
    await ledger.close_call("a", text_result("x"))
    now += once.KEPT_SECONDS - 1
    assert await ledger.claim("a", "t", "{}") == Done(text_result("x"))
    now += 2
    assert await ledger.claim("a", "t", "{}") == Claimed()
    await ledger.close()


async def test_old_results_go_and_their_ends_stay_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(once, "KEPT_RESULT_BYTES", 10_000)
    monkeypatch.setattr(once, "_PRUNED_BYTES", 1)
    now = 1_000_000.0
    ledger = CallLedger(tmp_path / "calls.sqlite", clock=lambda: now)
    for n in range(5):
        now += 1
        await ledger.claim(str(n), "t", "{}")
        await ledger.close_call(str(n), text_result("x" * 4000))
    await ledger.claim("last", "t", "{}")
    claims = [await ledger.claim(str(n), "t", "{}") for n in range(5)]
    assert claims[:3] == [Done(None)] * 3
    assert claims[3:] == [Done(text_result("x" * 4000))] * 2
    await ledger.close()


async def test_a_damaged_file_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "calls.sqlite").write_bytes(b"not a database" * 1000)
    ledger = CallLedger(tmp_path / "calls.sqlite")
    assert await ledger.claim("a", "t", "{}") == Claimed()
    assert (tmp_path / "calls.damaged").exists()
    await ledger.close()


_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from services.common.toolhost.once import CallLedger

async def main():
    ledger = CallLedger(Path(sys.argv[1]))
    await ledger.claim("a", "t", "{}")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.spec("PIP-090")
async def test_a_host_killed_in_the_middle_of_a_call_knows_it_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", _KILLED, str(path)],
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert killed.returncode == -signal.SIGKILL
    ledger = CallLedger(path)
    assert await ledger.claim("a", "t", "{}") == Unfinished()
    await ledger.close()

"""Whatever is killed, and whenever: nothing is lost, nothing runs twice, everything ends.

Bounded by time, so that it fits a check of every commit; the long form is ``python -m tests.chaos``.
CREW_CHAOS_KILLS, CREW_CHAOS_SECONDS and CREW_CHAOS_SEED change it.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.chaos.run import run

KILLS = int(os.environ.get("CREW_CHAOS_KILLS", "25"))
SECONDS = float(os.environ.get("CREW_CHAOS_SECONDS", "60"))
SEED = int(os.environ.get("CREW_CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.spec("TRN-138", "TRN-141", "TRN-148", "TRN-157", "TRN-161", "PIP-043", "PIP-090", "PIP-112")
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes through /proc of Linux")
def test_killing_anything_at_any_moment_breaks_no_promise() -> None:
    report = run(kills=KILLS, seconds=SECONDS, seed=SEED)
    print(report)
    assert not report.broken, str(report)
    # What was to be shown did take place.
    assert report.killed.total() >= min(KILLS, 5), str(report)
    assert report.facts["calls"] > 0, str(report)
    assert report.facts["taken over"] > 0, str(report)

"""Whatever happens in whatever order, the log stays acceptable and no message is lost."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fixtures.postgres import ScratchDatabase
from tests.integration.turns.interleaving import (
    CONVERSATIONS,
    Action,
    Decide,
    Kill,
    LoseHost,
    Pass,
    Say,
    Stop,
    interleaving,
)

# Examples are tried for so long; one that fails is then made smaller.
SECONDS = 40.0

_PLACES = st.integers(0, CONVERSATIONS - 1)
_SAY = st.builds(
    Say, _PLACES, st.sampled_from(["plain", "slow", "read", "write", "append"]), steer=st.booleans()
)
_ACTIONS: st.SearchStrategy[Action] = st.one_of(
    _SAY,
    _SAY,
    _SAY,
    st.builds(Decide, _PLACES, st.booleans()),
    st.builds(Stop, _PLACES),
    st.just(Kill()),
    st.just(LoseHost()),
    st.builds(Pass, st.integers(1, 30)),
)


@pytest.mark.timeout(300)
@pytest.mark.spec("TRN-036", "TRN-081", "TRN-091", "TRN-093", "TRN-138", "TRN-141", "TRN-161")
def test_every_order_of_events_leaves_an_acceptable_log_and_loses_no_message(
    database: ScratchDatabase, tmp_path: Path
) -> None:
    with asyncio.Runner() as runner:
        context = interleaving(database, tmp_path)
        crew = runner.run(context.__aenter__())
        ends_at = time.monotonic() + SECONDS
        tried, failed = 0, False

        @settings(
            max_examples=200,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.lists(_ACTIONS, min_size=2, max_size=10))
        def example(actions: list[Action]) -> None:
            nonlocal tried, failed
            if not failed and time.monotonic() > ends_at:
                return
            tried += 1
            sentences = runner.run(crew.run(actions))
            failed = failed or bool(sentences)
            assert not sentences, "\n".join(sentences)

        try:
            example()
        finally:
            runner.run(context.__aexit__(None, None, None))
    assert tried >= 3, "the machine was too busy to try anything"

"""Whatever happens in whatever order, the log stays acceptable and no message is lost."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
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
SECONDS = 30.0

_PLACES = st.integers(0, CONVERSATIONS - 1)
# Commands are what takes time; some messages follow at once and become one turn of several calls.
_SAY = st.builds(
    Say, _PLACES, st.sampled_from(["append", "append", "write", "read", "slow", "plain"]), steer=st.booleans()
)
_PASS = st.builds(Pass, st.integers(1, 60))
_STOP = st.builds(Stop, _PLACES)
_DECIDE = st.builds(Decide, _PLACES, st.booleans())
# A kill or a lost host takes seconds: one of ten, where all else takes a moment.
_ACTIONS: st.SearchStrategy[Action] = st.integers(0, 19).flatmap(
    lambda drawn: (
        st.sampled_from([Kill(), LoseHost()])
        if drawn < 2
        else _STOP
        if drawn < 5
        else _DECIDE
        if drawn < 7
        else _PASS
        if drawn < 12
        else _SAY
    )
)
_TWO = [Say(1, "slow"), Say(1, "append"), Say(1, "append")]


def stopped_after(hundredths: int) -> list[Action]:
    """Two commands in one reply, and a stop in the middle of one of them or between."""
    return [*_TWO, Pass(hundredths), Stop(1), Say(1, "plain")]


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
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @example(stopped_after(90))
        @example(stopped_after(120))
        @example(stopped_after(150))
        @example([*_TWO, Pass(120), Kill(), Say(1, "read", steer=True)])
        @example([*_TWO, Pass(120), LoseHost(), Stop(1)])
        @example([Say(0, "append"), Pass(40), Say(0, "read", steer=True), Decide(0, approve=False), Kill()])
        @given(st.lists(_ACTIONS, min_size=3, max_size=12))
        def one(actions: list[Action]) -> None:
            nonlocal tried, failed
            if not failed and time.monotonic() > ends_at:
                return
            tried += 1
            sentences = runner.run(crew.run(actions))
            failed = failed or bool(sentences)
            assert not sentences, "\n".join(sentences)

        try:
            one()
        finally:
            runner.run(context.__aexit__(None, None, None))
    assert tried >= 3, "the machine was too busy to try anything"

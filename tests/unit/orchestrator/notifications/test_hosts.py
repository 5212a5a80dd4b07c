"""When a host counts as down."""

from __future__ import annotations

import pytest

from services.orchestrator.hosts.contract import HostState, HostStatus
from services.orchestrator.notifications.hosts import HostWatch


class Clock:
    """Seconds that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def looked(watch: HostWatch, clock: Clock, status: HostStatus, seconds: float = 0) -> list[bool]:
    """What is told after so many seconds in which the host ended up like this."""
    clock.now += seconds
    return [change.down for change in watch.look([HostState("tools", status)])]


@pytest.mark.spec("PIP-113")
def test_a_minute_without_an_answer_is_told_once_and_so_is_the_return() -> None:
    clock = Clock()
    watch = HostWatch(clock)
    assert looked(watch, clock, "ready") == [False], "ends what an earlier process has told"
    assert looked(watch, clock, "ready", 100) == []
    assert looked(watch, clock, "unreachable") == []
    assert looked(watch, clock, "unresponsive", 60) == []
    assert looked(watch, clock, "unreachable", 1) == [True]
    assert looked(watch, clock, "unreachable", 1000) == []
    assert looked(watch, clock, "ready") == [False]
    assert looked(watch, clock, "ready", 1000) == []


@pytest.mark.spec("PIP-113")
def test_a_host_that_comes_back_in_time_is_not_told_of() -> None:
    clock = Clock()
    watch = HostWatch(clock)
    looked(watch, clock, "ready")
    for _ in range(10):
        assert looked(watch, clock, "unreachable") == []
        assert looked(watch, clock, "unreachable", 50) == []
        assert looked(watch, clock, "ready", 5) == []


@pytest.mark.spec("PIP-113")
def test_a_host_that_was_never_there_is_told_of() -> None:
    clock = Clock()
    watch = HostWatch(clock)
    assert looked(watch, clock, "unknown") == []
    assert looked(watch, clock, "unreachable", 61) == [True]

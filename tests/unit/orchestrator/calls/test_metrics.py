"""Figures in memory: labels that cannot grow without end, and quantiles that are values."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from services.orchestrator.calls.closing import close
from services.orchestrator.calls.contract import CallOutcome
from services.orchestrator.calls.metrics import ToolMetrics, nearest_rank
from services.orchestrator.store.records import StoredCall


def outcome(tool: str = "read", **changes: object) -> CallOutcome:
    closed = close(StoredCall("c1", tool, "{}"), "not_started", "en")
    good = replace(closed, ok=True, verdict="free", fault=None, outcome="done", ms=1, effect="read")
    return replace(good, **changes)


def tools(metrics: ToolMetrics) -> set[str]:
    return {
        sample.labels["tool"]
        for family in text_string_to_metric_families(metrics.text())
        for sample in family.samples
    }


@pytest.mark.spec("PIP-111")
def test_names_that_models_make_up_are_one_label() -> None:
    metrics = ToolMetrics("here")
    for n in range(50):
        metrics.observe("a", outcome(f"made_up_{n}", ok=False, verdict="failed", effect=None, ms=None))
    assert tools(metrics) == {"unknown"}


def test_series_end_somewhere() -> None:
    metrics = ToolMetrics("here")
    for n in range(2_100):
        metrics.observe("a", outcome(f"tool_{n}"))
    assert len(tools(metrics)) == 2_001
    assert "other" in tools(metrics)


def test_hostile_names_stay_inside_their_label() -> None:
    metrics = ToolMetrics("here")
    metrics.observe("a", outcome('x"} 1\nforged_total{a="'))
    assert tools(metrics) == {'x"} 1\nforged_total{a="'}


@pytest.mark.spec("PIP-111")
def test_quantiles_are_those_of_the_last_calls() -> None:
    metrics = ToolMetrics("here")
    for ms in (9_000, *range(1, 257)):
        metrics.observe("a", outcome(ms=ms))
    found = {
        sample.labels["quantile"]: sample.value
        for family in text_string_to_metric_families(metrics.text())
        for sample in family.samples
        if family.name == "crew_tool_recent_duration_seconds"
    }
    assert found == {"0.5": 0.128, "0.95": 0.244, "1": 0.256}


@given(st.lists(st.integers(0, 10**6), min_size=1), st.sampled_from([50, 95, 100]))
def test_a_quantile_is_a_value_that_this_share_does_not_exceed(values: list[int], hundredths: int) -> None:
    found = nearest_rank(sorted(values), hundredths / 100)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= len(values) * hundredths
    assert sum(value < found for value in values) * 100 < len(values) * hundredths

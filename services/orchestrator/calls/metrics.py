"""Figures of this process about tool calls, for Prometheus (PIP-111).

They are counted in memory as calls end, so that neither a call nor a scrape costs a query. The
figures of the page, over days and all processes, come from the audit trail (`store.tool_use`).
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from services.orchestrator.calls.contract import CallOutcome

# From a small read to the longest deadline of a tool.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)
# Quantiles are those of so many last calls of one tool by one agent.
_RECENT = 256
# A series is never given up, so a crew that changes its tools for ever must end somewhere.
_MOST_SERIES = 2_000
_OTHER = "other"
# Names that models make up are no label.
_UNKNOWN = "unknown"
_LABELS = ("tool", "agent")


class ToolMetrics:
    """Counts calls and gives them out as text.

    Args:
        process: Value of the label ``orchestrator``: several of them may stand behind one gateway, and
            each counts for itself. By default the name of this machine.
    """

    content_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self, process: str | None = None) -> None:
        self._registry = CollectorRegistry(target_info=None)
        name = process or socket.gethostname()
        labels = ("orchestrator", *_LABELS)
        self._process = name
        registry = self._registry
        self._calls = Counter("crew_tool_calls", "Calls of tools that ended.", labels, registry=registry)
        self._failures = Counter(
            "crew_tool_failures", "Calls that failed, by kind.", (*labels, "kind"), registry=registry
        )
        self._refusals = Counter(
            "crew_tool_refusals",
            "Calls that a rule or a person refused, or that nobody decided in time.",
            (*labels, "by"),
            registry=registry,
        )
        self._seconds = Histogram(
            "crew_tool_duration_seconds",
            "How long calls that ran took.",
            labels,
            buckets=_SECONDS,
            registry=registry,
        )
        self._bytes_in = Counter("crew_tool_argument_bytes", "Bytes of arguments.", labels, registry=registry)
        self._bytes_out = Counter("crew_tool_result_bytes", "Bytes of results.", labels, registry=registry)
        self._recent = _RecentDurations(name)
        registry.register(self._recent)
        self._series: set[tuple[str, str]] = set()

    def observe(self, agent_id: str, outcome: CallOutcome) -> None:
        """Count a call that ended."""
        tool, agent = self._labels(outcome, agent_id)
        labels = (self._process, tool, agent)
        self._calls.labels(*labels).inc()
        if outcome.refused:
            by = outcome.verdict if outcome.verdict in {"denied", "expired"} else "rule"
            self._refusals.labels(*labels, by).inc()
        elif outcome.fault is not None:
            self._failures.labels(*labels, outcome.fault).inc()
        self._bytes_in.labels(*labels).inc(len(outcome.arguments_json.encode(errors="replace")))
        self._bytes_out.labels(*labels).inc(outcome.bytes_out)
        if outcome.ms is not None:
            self._seconds.labels(*labels).observe(outcome.ms / 1000)
            self._recent.add(tool, agent, outcome.ms)

    def text(self) -> str:
        """Everything, in the text format of Prometheus."""
        return generate_latest(self._registry).decode()

    def _labels(self, outcome: CallOutcome, agent_id: str) -> tuple[str, str]:
        # Whatever was not looked up among the agent's tools is a name that the model wrote.
        known = outcome.effect is not None or outcome.verdict != "failed"
        labels = (outcome.call.name if known else _UNKNOWN, agent_id)
        if labels not in self._series:
            if len(self._series) >= _MOST_SERIES:
                return _OTHER, _OTHER
            self._series.add(labels)
        return labels


class _RecentDurations:
    """p50, p95 and maximum of the last calls, which a histogram only estimates."""

    def __init__(self, process: str) -> None:
        self._process = process
        self._last: dict[tuple[str, str], deque[int]] = {}

    def add(self, tool: str, agent: str, ms: int) -> None:
        """Take the duration of one call."""
        self._last.setdefault((tool, agent), deque(maxlen=_RECENT)).append(ms)

    def collect(self) -> Iterator[Metric]:
        """One gauge with a series for each quantile."""
        family = GaugeMetricFamily(
            "crew_tool_recent_duration_seconds",
            f"Durations among the last {_RECENT} calls that ran: quantile 0.5, 0.95 and 1 (the longest).",
            labels=("orchestrator", *_LABELS, "quantile"),
        )
        for (tool, agent), durations in self._last.items():
            ordered = sorted(durations)
            for quantile in (0.5, 0.95, 1.0):
                seconds = nearest_rank(ordered, quantile) / 1000
                family.add_metric((self._process, tool, agent, f"{quantile:g}"), seconds)
        yield family


def nearest_rank(ordered: Sequence[int], quantile: float) -> int:
    """The smallest value that at least this share of `ordered`, which is not empty, does not exceed."""
    # In hundredths, since 0.95 * 20 is a little more than 19 in binary.
    hundredths = round(quantile * 100)
    return ordered[max(0, -(-len(ordered) * hundredths // 100) - 1)]

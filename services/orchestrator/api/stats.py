"""The service crew.v1.Stats: what tools and prompts do, in figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import grpc.aio
from crew.v1 import stats_pb2 as pb
from crew.v1 import stats_pb2_grpc

from services.common.errors import Invalid
from services.orchestrator.calls.metrics import ToolMetrics
from services.orchestrator.store import prompt_use, tool_use
from services.orchestrator.store.pool import Database

Context = grpc.aio.ServicerContext[Any, Any]

_DAYS = 7
_MOST_DAYS = 90


class StatsServicer(stats_pb2_grpc.StatsServicer):
    """Figures over days from the audit trail, and those of this process for Prometheus."""

    def __init__(self, *, database: Database, metrics: ToolMetrics) -> None:
        self._database = database
        self._metrics = metrics

    async def Tools(self, request: pb.ToolStatsRequest, context: Context) -> pb.ToolStatsReply:
        """Use, failures and misleading descriptions of the last days (PIP-111, PIP-154)."""
        days = _days(request)
        async with self._database.snapshot() as connection:
            uses = await tool_use.uses(connection, days)
            descriptions = await tool_use.description_faults(connection, days)
        return pb.ToolStatsReply(
            days=days,
            uses=[_use(use) for use in uses],
            descriptions=[_description(faults) for faults in descriptions],
        )

    async def Prompts(self, request: pb.PromptStatsRequest, context: Context) -> pb.PromptStatsReply:
        """What was cached of each agent's prompts, and what moved in them (FLD-012)."""
        days = _days(request)
        async with self._database.snapshot() as connection:
            uses = await prompt_use.uses(connection, days)
        return pb.PromptStatsReply(days=days, uses=[_prompts(use) for use in uses])

    async def Metrics(self, request: pb.MetricsRequest, context: Context) -> pb.MetricsReply:
        """The counters as they are; costs no query."""
        return pb.MetricsReply(text=self._metrics.text(), content_type=self._metrics.content_type)


def _days(request: pb.ToolStatsRequest | pb.PromptStatsRequest) -> int:
    days = request.days if request.HasField("days") else _DAYS
    if not 1 <= days <= _MOST_DAYS:
        raise Invalid("BAD_DAYS", "error.audit.bad_days", most=_MOST_DAYS)
    return days


def _prompts(use: prompt_use.PromptUse) -> pb.PromptUse:
    return pb.PromptUse(
        agent_id=use.agent_id,
        calls=use.calls,
        prompt_tokens=use.prompt_tokens,
        cached_tokens=use.cached_tokens,
        moved=_counts(use.moved),
        compactions=use.compactions,
    )


def _use(use: tool_use.ToolUse) -> pb.ToolUse:
    return pb.ToolUse(
        tool=use.tool,
        agent_id=use.agent_id,
        calls=use.calls,
        failures=_counts(use.failures),
        refusals=use.refusals,
        p50_ms=use.p50_ms,
        p95_ms=use.p95_ms,
        max_ms=use.max_ms,
        bytes_in=use.bytes_in,
        bytes_out=use.bytes_out,
    )


def _description(faults: tool_use.DescriptionFaults) -> pb.DescriptionFaults:
    return pb.DescriptionFaults(
        tool=faults.tool,
        total=faults.total,
        parameters=_counts(faults.parameters),
        unknown_names=_counts(faults.unknown_names),
        absent=faults.absent,
        followed_by=_counts(faults.followed_by),
    )


def _counts(counts: Mapping[str, int]) -> list[pb.Count]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [pb.Count(name=name, count=count) for name, count in ordered]

"""What tools pay themselves is charged like a model call, and a host's word never gives money back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from crew.v1 import toolhost_pb2_grpc

from services.common.rpc import RpcServer
from services.common.toolhost.contract import (
    NoOpinion,
    Run,
    ToolResult,
    ToolSpec,
    Verdict,
    text_result,
)
from services.common.toolhost.once import CallLedger
from services.common.toolhost.server import ToolHostServicer
from services.common.wording import load
from tests.fixtures.model_server import ModelServer, call, text
from tests.integration.money.conftest import Asking, Rows
from tests.integration.money.test_budgets import costing

PARAMETERS = {
    "type": "object",
    "properties": {"cost": {"type": "string"}, "unknown": {"type": "integer"}},
    "additionalProperties": False,
}


class Pay:
    """Says that it paid what its arguments name."""

    name = "pay"

    def spec(self, locale: str) -> ToolSpec:
        return ToolSpec(self.name, "pays", PARAMETERS, self.name, kind="read", effect="read", judges=True)

    def offered_to(self, mode: str, settings: Mapping[str, Any]) -> bool:
        return True

    def prepare(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return arguments

    async def judge(self, context: Any, arguments: Mapping[str, Any]) -> Verdict:
        return NoOpinion()

    async def run(self, run: Run) -> ToolResult:
        cost = run.arguments.get("cost")
        return text_result(
            "paid",
            cost_usd=None if cost is None else float(str(cost)),
            unknown_cost_calls=int(str(run.arguments.get("unknown", 0))),
        )


@pytest.fixture
async def bank() -> AsyncIterator[str]:
    """A tool host with that tool, as lines of config.yaml."""
    with TemporaryDirectory(prefix="crew-h-") as name:
        folder = Path(name)
        (folder / "token").write_text("any")
        server = RpcServer(f"unix:{folder}/s", catalogue=load("common"), verifier=None)
        once = CallLedger(folder / "calls.sqlite")
        toolhost_pb2_grpc.add_ToolHostServicer_to_server(
            ToolHostServicer([Pay()], once, isolation="os"), server.grpc
        )
        await server.start()
        entry = f"{{address: 'unix:{folder}/s', token_file: '{folder}/token', trust: true}}"
        yield f"tool_hosts: {{bank: {entry}}}\n"
        await server.stop(1)
        await once.close()


@pytest.mark.spec("TRN-263", "TRN-259", "FLD-016")
@pytest.mark.parametrize(
    ("arguments", "paid", "unknown"),
    [
        ({"cost": "0.25"}, 0.25, 0),
        ({"cost": "0.25", "unknown": 2}, 0.25, 2),
        ({"unknown": 1}, 0.0, 1),
        ({"cost": "-5"}, 0.0, 1),
        ({"cost": "nan"}, 0.0, 1),
        ({"cost": "inf"}, 0.0, 1),
        ({"cost": "1e300"}, 0.0, 1),
        ({"unknown": 2_000_000_000}, 0.0, 100),
        ({"unknown": -7}, 0.0, 0),
        ({}, 0.0, 0),
    ],
)
async def test_a_tools_own_money_is_charged_once(
    arguments: dict[str, Any],
    paid: float,
    unknown: int,
    bank: str,
    asking: Asking,
    model_server: ModelServer,
    rows: Rows,
) -> None:
    async with asking(bank) as crew:
        model_server.play(call("pay", arguments, usage=costing(0.01)), text("done", usage=costing(0.01)))
        conversation_id = await crew.open(autonomous=True, cost_cap_usd=0)
        async with asyncio.timeout(60):
            await crew.send(conversation_id, "go")
        found = await crew.get(conversation_id)
        assert found.spent_usd == pytest.approx(0.02 + paid)
        assert found.unknown_cost_calls == unknown
        run = await crew.last_run(conversation_id)
        assert (run.cost_usd, run.unknown_cost_calls) == (pytest.approx(0.02 + paid), unknown)
        # The ledger adds up to what the conversation spent.
        [total] = rows("select sum(cost_usd)::float8 as usd, sum(unknown_cost_calls)::int as n from spending")
        assert total == {"usd": pytest.approx(found.spent_usd), "n": unknown}
        entries = rows("select distinct purpose, provider, model from side_calls")
        assert entries == (
            [{"purpose": "tool", "provider": "bank", "model": "pay"}] if paid or unknown else []
        )

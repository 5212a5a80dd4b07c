"""Settings of money and of what is kept: where they come from, and that they count."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from crew.v1 import conversations_pb2, turns_pb2

from services.cli.commands import migrate
from services.common.start import StartError
from tests.fixtures.crew import running_crew
from tests.fixtures.postgres import ScratchDatabase


@pytest.mark.spec("TRN-011", "TRN-009")
@pytest.mark.parametrize(
    ("config", "environ", "agent", "cap", "autonomous"),
    [
        ("", {}, "", 0.5, False),
        ("cost_cap_usd: 0.7\n", {}, "", 0.7, False),
        ("cost_cap_usd: 0.7\n", {"MY_AGENT_COST_CAP_USD": "0.9"}, "", 0.9, False),
        ("cost_cap_usd: 0.7\n", {"MY_AGENT_COST_CAP_USD": "0.9"}, "cost_cap_usd: 0.3\n", 0.3, False),
        ("cost_cap_usd: 0.7\n", {}, "mode: work\n", 20.0, True),
        ("", {}, "mode: work\ncost_cap_usd: 0\n", 0.0, True),
    ],
)
async def test_a_new_conversation_has_its_cap_from_profile_environment_or_file(
    config: str,
    environ: dict[str, str],
    agent: str,
    cap: float,
    autonomous: bool,
    database: ScratchDatabase,
) -> None:
    async with running_crew(database, config=config, environ=environ, agent=agent) as crew:
        opened = await crew.conversations.Create(conversations_pb2.CreateConversationRequest())
        daily = await crew.turns.Inbound(turns_pb2.InboundRequest(text="hello"))
        for found in (opened, await crew.get(daily.conversation_id)):
            assert (found.cost_cap_usd, found.autonomous) == (pytest.approx(cap), autonomous)
            assert (found.spent_usd, found.unknown_cost_calls, found.over_budget) == (0, 0, False)
            assert not found.HasField("approval_ttl_seconds")
            assert (list(found.skills), list(found.auto_approve)) == ([], [])


@pytest.mark.spec("TRN-003")
async def test_what_is_stored_is_in_utc_whatever_the_zone(database: ScratchDatabase) -> None:
    async with running_crew(database, environ={"MY_AGENT_TIMEZONE": "Pacific/Kiritimati"}) as crew:
        created = (await crew.get(await crew.open())).created_at
        assert created.endswith("Z")
        assert abs(datetime.now(UTC) - datetime.fromisoformat(created)) < timedelta(minutes=5)


@pytest.mark.spec("FLD-052")
def test_the_trail_is_kept_as_long_as_the_settings_say(
    database: ScratchDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_AGENT_HOME", str(tmp_path))
    monkeypatch.setenv("MY_AGENT_MIGRATION_DATABASE_URL", database.owner_url)
    with psycopg.connect(database.owner_url, autocommit=True) as connection:
        for age in (1, 3, 30):
            connection.execute(
                "insert into audit.calls (at, event, agent_id, conversation_id, run_id, call_id, tool, "
                "arguments_sha256, arguments_short, allowed_by) values (now() - make_interval(months => %s), "
                "'allowed', 'a', gen_random_uuid(), gen_random_uuid(), 'c', 't', '', '', 'free')",
                (age,),
            )
        for setting, kept in (("audit_months: 48\n", 3), ("", 2), ("audit_months: 2\n", 1)):
            (tmp_path / "config.yaml").write_text(setting)
            assert migrate.run(argparse.Namespace()) == 0
            assert connection.execute("select count(*) from audit.calls").fetchone() == (kept,)


async def test_a_zone_that_the_database_does_not_know_stops_the_start(database: ScratchDatabase) -> None:
    # A name that Python's zones may have and Postgres's never do; where neither has it, that is said.
    with pytest.raises(StartError) as refused:
        async with running_crew(database, environ={"MY_AGENT_TIMEZONE": "localtime"}):
            pass
    assert "time zone" in refused.value.text("en")

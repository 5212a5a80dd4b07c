"""The append-only record of what was let through and why (PIP-112)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from services.orchestrator.store.pool import Connection


@dataclass(frozen=True, slots=True)
class AuditedCall:
    """Which call an entry is about."""

    agent_id: str
    conversation_id: str
    run_id: str
    call_id: str
    tool: str
    arguments_sha256: bytes
    # Shortened, with known secrets covered.
    arguments_short: str


async def record(
    connection: Connection,
    event: Literal["allowed", "ended", "withheld"],
    call: AuditedCall,
    *,
    allowed_by: str,
    rule: str = "",
    decided_by: str | None = None,
    ok: bool | None = None,
    ms: int | None = None,
) -> None:
    """Add an entry. `allowed` is committed before the effect begins (I1)."""
    await connection.execute(
        """
        insert into audit.calls (event, agent_id, conversation_id, run_id, call_id, tool, arguments_sha256,
            arguments_short, allowed_by, rule, decided_by, ok, ms)
        values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
        """,
        (
            event,
            call.agent_id,
            call.conversation_id,
            call.run_id,
            call.call_id,
            call.tool,
            call.arguments_sha256,
            call.arguments_short,
            allowed_by,
            rule,
            decided_by,
            ok,
            ms,
        ),
    )

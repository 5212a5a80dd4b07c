"""What the stable parts of each conversation's last prompt were (FLD-012)."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from services.orchestrator.store.pool import Connection


async def last(connection: Connection, conversation_id: str) -> Mapping[str, str] | None:
    """The digest of each part by its name; None before the first model call."""
    cursor = await connection.execute(
        "select digests::text from prompt_parts where conversation_id = %s", (conversation_id,)
    )
    row = await cursor.fetchone()
    digests: Mapping[str, str] | None = orjson.loads(row["digests"]) if row else None
    return digests


async def keep(connection: Connection, conversation_id: str, digests: Mapping[str, str]) -> None:
    """Remember the parts of a prompt that a model was told."""
    await connection.execute(
        """
        insert into prompt_parts (conversation_id, digests) values (%s, %s)
        on conflict (conversation_id) do update set digests = excluded.digests
        """,
        (conversation_id, orjson.dumps(digests).decode()),
    )

"""What scripts keep between their runs: one store per agent and conversation or job (SCR-299 to 339)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.orchestrator.store.pool import Connection


@dataclass(frozen=True, slots=True)
class StoreName:
    """Which store: of an agent, and there of a conversation or a job (SCR-315, SCR-319)."""

    agent_id: str
    # ``conv:<conversation id>`` or ``job:<schedule id>``.
    namespace: str
    # The store goes with this conversation; None: it stays until somebody deletes it.
    conversation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """A key that a script stored, or forgot."""

    key: str
    # Exact JSON text; None forgets the key.
    json: str | None


@dataclass(frozen=True, slots=True)
class Applied:
    """Everything is kept."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """Nothing was kept: the store would hold so many characters."""

    chars: int


@dataclass(frozen=True, slots=True)
class Removed:
    """Nothing was kept: the agent was removed meanwhile."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One kept value."""

    namespace: str
    key: str
    json: str
    updated_at: datetime


async def generation(connection: Connection, agent_id: str) -> int:
    """How often an agent of this id was removed (SCR-338)."""
    cursor = await connection.execute("select removals from agent_removals where agent_id = %s", (agent_id,))
    row = await cursor.fetchone()
    return int(row["removals"]) if row else 0


async def entries(
    connection: Connection, name: StoreName, *, generation: int
) -> list[tuple[str, str]] | None:
    """Keys and values in the order of the keys; None when the agent was removed since `generation`.

    The number is compared under the lock that holds for the read (SCR-338).
    """
    if await _locked_generation(connection, name.agent_id) != generation:
        return None
    cursor = await connection.execute(
        "select key, value from script_values where agent_id = %s and namespace = %s order by key",
        (name.agent_id, name.namespace),
    )
    return [(bytes(row["key"]).decode(), row["value"]) for row in await cursor.fetchall()]


async def apply(
    connection: Connection,
    name: StoreName,
    writes: Sequence[Write],
    *,
    generation: int,
    most_chars: int,
) -> Applied | TooLarge | Removed:
    """Keep `writes` in this transaction, all or none; the store is measured again (SCR-307, 311, 312)."""
    if await _locked_generation(connection, name.agent_id) != generation:
        return Removed()
    if not writes:
        return Applied()
    # Of two scripts that end together, the second measures what the first has kept.
    await connection.execute(
        "select pg_advisory_xact_lock(hashtextextended(%s, 2))", (f"{name.agent_id}\n{name.namespace}",)
    )
    keys = [write.key.encode() for write in writes]
    cursor = await connection.execute(
        """
        select coalesce(sum(key_chars + value_chars), 0)::bigint as chars from script_values
        where agent_id = %s and namespace = %s and key <> all(%s)
        """,
        (name.agent_id, name.namespace, keys),
    )
    row = await cursor.fetchone()
    stored = [write for write in writes if write.json is not None]
    chars = int(row["chars"]) if row else 0
    chars += sum(len(write.key) + len(write.json or "") for write in stored)
    # Forgetting only frees room, even in a store that holds too much (SCR-303).
    if stored and chars > most_chars:
        return TooLarge(chars)
    await connection.execute(
        "delete from script_values where agent_id = %s and namespace = %s and key = any(%s)",
        (name.agent_id, name.namespace, keys),
    )
    async with connection.cursor() as writing:
        await writing.executemany(
            """
            insert into script_values
                (agent_id, namespace, conversation_id, key, value, key_chars, value_chars)
            values (%s, %s, %s, %s, %s, %s, %s)
            """,
            [
                (
                    name.agent_id,
                    name.namespace,
                    name.conversation_id,
                    write.key.encode(),
                    write.json,
                    len(write.key),
                    len(write.json or ""),
                )
                for write in stored
            ],
        )
    return Applied()


async def agent_removed(connection: Connection, agent_id: str) -> None:
    """Drop every store of the agent; scripts that run keep nothing any more (SCR-334, SCR-335)."""
    await connection.execute(
        """
        insert into agent_removals (agent_id, removals) values (%s, 1)
        on conflict (agent_id) do update set removals = agent_removals.removals + 1
        """,
        (agent_id,),
    )
    await connection.execute("delete from script_values where agent_id = %s", (agent_id,))


async def all_of(connection: Connection, agent_id: str) -> list[Kept]:
    """Every value the agent's scripts keep, by store and key (SCR-322)."""
    cursor = await connection.execute(
        """
        select namespace, key, value, updated_at from script_values where agent_id = %s
        order by convert_to(namespace, 'UTF8'), key
        """,
        (agent_id,),
    )
    return [
        Kept(row["namespace"], bytes(row["key"]).decode(), row["value"], row["updated_at"])
        for row in await cursor.fetchall()
    ]


async def value(connection: Connection, agent_id: str, namespace: str, key: str) -> Kept | None:
    """One kept value, or None."""
    cursor = await connection.execute(
        """
        select value, updated_at from script_values
        where agent_id = %s and namespace = %s and key = %s
        """,
        (agent_id, namespace, key.encode()),
    )
    row = await cursor.fetchone()
    return Kept(namespace, key, row["value"], row["updated_at"]) if row else None


async def conversation_titles(connection: Connection, agent_id: str) -> dict[str, str]:
    """Titles of the conversations whose scripts keep something, by the conversation's id."""
    cursor = await connection.execute(
        """
        select c.id, c.title from conversations c
        where c.id in (select conversation_id from script_values where agent_id = %s)
        """,
        (agent_id,),
    )
    return {str(row["id"]): row["title"] for row in await cursor.fetchall()}


async def forget(connection: Connection, agent_id: str, namespace: str, key: str | None) -> int:
    """Forget one key of a store, or all of it; how many values are lost (SCR-329)."""
    cursor = await connection.execute(
        """
        delete from script_values
        where agent_id = %s and namespace = %s and (%s::bytea is null or key = %s::bytea)
        """,
        (agent_id, namespace, *(2 * (key.encode() if key is not None else None,))),
    )
    return cursor.rowcount


async def _locked_generation(connection: Connection, agent_id: str) -> int:
    """The number as it stays until this transaction ends; a removal waits for it, or has happened."""
    await connection.execute(
        "insert into agent_removals (agent_id) values (%s) on conflict do nothing", (agent_id,)
    )
    cursor = await connection.execute(
        "select removals from agent_removals where agent_id = %s for share", (agent_id,)
    )
    row = await cursor.fetchone()
    return int(row["removals"]) if row else 0

"""Credentials, sessions, API tokens and the record of access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from services.orchestrator.store.pool import Connection

FAILURES_ALLOWED = 5
FAILURE_WINDOW = timedelta(seconds=60)
BLOCKED_FOR = timedelta(seconds=60)
# A session is prolonged at most this often, so that reading does not become writing.
_PROLONG_AFTER = timedelta(minutes=10)
_TOUCH_AFTER = timedelta(minutes=1)

AccessEvent = Literal[
    "login",
    "login_failed",
    "login_blocked",
    "logout",
    "sessions_ended",
    "set_up",
    "set_up_failed",
    "password_set",
    "token_created",
    "token_deleted",
    "scope_denied",
]


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session that is valid."""

    id: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class TokenRow:
    """An API token without its secret."""

    id: str
    name: str
    scopes: Sequence[str]
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None


async def password_hash(connection: Connection) -> str | None:
    """The hash of the owner's password; None when there is none."""
    cursor = await connection.execute("select password_hash from owner_credential")
    row = await cursor.fetchone()
    return None if row is None else str(row["password_hash"])


async def set_password(connection: Connection, hashed: str) -> None:
    """Replace the owner's password; every session and set-up token ends with the old one."""
    await connection.execute(
        """
        insert into owner_credential (password_hash) values (%s)
        on conflict (only_row) do update set password_hash = excluded.password_hash, changed_at = now()
        """,
        (hashed,),
    )
    await connection.execute("delete from sessions")
    await connection.execute("delete from setup_tokens")


async def rehash_password(connection: Connection, old: str, new: str) -> None:
    """Keep the same password under newer parameters, unless it was changed meanwhile."""
    await connection.execute(
        "update owner_credential set password_hash = %s where password_hash = %s", (new, old)
    )


async def add_setup_token(connection: Connection, secret_sha256: bytes, lasts: timedelta) -> None:
    """Remember a token of the first run; those that have expired are dropped."""
    await connection.execute("delete from setup_tokens where expires_at < now()")
    await connection.execute(
        "insert into setup_tokens (secret_sha256, expires_at) values (%s, now() + %s)", (secret_sha256, lasts)
    )


async def take_setup_token(connection: Connection, secret_sha256: bytes) -> bool:
    """Use a set-up token up; whether it was valid and there is no password yet."""
    cursor = await connection.execute(
        """
        delete from setup_tokens
        where secret_sha256 = %s and expires_at > now() and not exists (select from owner_credential)
        returning 1
        """,
        (secret_sha256,),
    )
    return await cursor.fetchone() is not None


async def begin_attempt(connection: Connection, address: str) -> float:
    """Count an attempt to log in as failed before it is judged, so that a race gains no guesses.

    Returns:
        Seconds for which the address is blocked; 0 lets the attempt be judged.
    """
    await connection.execute(
        """
        delete from login_failures
        where coalesce(blocked_until, failed_at[1]) < now() - interval '10 minutes'
        """
    )
    cursor = await connection.execute(
        """
        insert into login_failures as f (address, failed_at) values (%(address)s, array[now()])
        on conflict (address) do update set
            failed_at = case
                when f.blocked_until > now() then f.failed_at
                else now() || array(
                    select t.at from unnest(f.failed_at) as t (at) where t.at > now() - %(window)s)
            end
        returning
            extract(epoch from f.blocked_until - now())::float8 as blocked, cardinality(f.failed_at) as n
        """,
        {"address": address, "window": FAILURE_WINDOW},
    )
    row = await cursor.fetchone()
    assert row is not None
    if row["blocked"] is not None and row["blocked"] > 0:
        return float(row["blocked"])
    if row["n"] >= FAILURES_ALLOWED:
        # This one is judged still; the next are blocked.
        await connection.execute(
            "update login_failures set blocked_until = now() + %s, failed_at = '{}' where address = %s",
            (BLOCKED_FOR, address),
        )
    return 0.0


async def forget_failures(connection: Connection, address: str) -> None:
    """The attempt was right: the address starts anew."""
    await connection.execute("delete from login_failures where address = %s", (address,))


async def add_session(
    connection: Connection, session_id: str, secret_sha256: bytes, address: str, lasts: timedelta, most: int
) -> datetime:
    """Begin a session, dropping the expired ones and the oldest over `most`; returns its end."""
    await connection.execute("delete from sessions where expires_at < now()")
    cursor = await connection.execute(
        """
        insert into sessions (id, secret_sha256, address, expires_at) values (%s, %s, %s, now() + %s)
        returning expires_at
        """,
        (session_id, secret_sha256, address, lasts),
    )
    row = await cursor.fetchone()
    assert row is not None
    await connection.execute(
        "delete from sessions where id in (select id from sessions order by last_used_at desc offset %s)",
        (most,),
    )
    expires_at: datetime = row["expires_at"]
    return expires_at


async def use_session(connection: Connection, secret_sha256: bytes, lasts: timedelta) -> SessionRow | None:
    """The session of a secret, prolonged by being used (GTW-028); None when it has ended."""
    cursor = await connection.execute(
        """
        select id::text, expires_at, last_used_at from sessions
        where secret_sha256 = %s and expires_at > now()
        """,
        (secret_sha256,),
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    cursor = await connection.execute(
        """
        update sessions set last_used_at = now(), expires_at = now() + %s
        where secret_sha256 = %s and last_used_at < now() - %s
        returning expires_at
        """,
        (lasts, secret_sha256, _PROLONG_AFTER),
    )
    prolonged = await cursor.fetchone()
    return SessionRow(row["id"], (prolonged or row)["expires_at"])


async def end_session(connection: Connection, secret_sha256: bytes) -> str | None:
    """End the session of a secret; returns its id."""
    cursor = await connection.execute(
        "delete from sessions where secret_sha256 = %s returning id::text", (secret_sha256,)
    )
    row = await cursor.fetchone()
    return None if row is None else str(row["id"])


async def end_other_sessions(connection: Connection, keep: str | None) -> int:
    """End every session but the one with the id `keep`; returns how many ended."""
    cursor = await connection.execute(
        "delete from sessions where %(keep)s::text is null or id::text <> %(keep)s", {"keep": keep}
    )
    return cursor.rowcount


async def add_token(
    connection: Connection,
    token_id: str,
    name: str,
    secret_sha256: bytes,
    scopes: Sequence[str],
    lasts: timedelta | None,
) -> TokenRow | None:
    """Remember an API token; None when the name is in use."""
    cursor = await connection.execute(
        """
        insert into api_tokens (id, name, secret_sha256, scopes, expires_at)
        values (%s, %s, %s, %s, now() + %s)
        on conflict (name) do nothing
        returning id::text, name, scopes, created_at, last_used_at, expires_at
        """,
        (token_id, name, secret_sha256, list(scopes), lasts),
    )
    row = await cursor.fetchone()
    return None if row is None else TokenRow(**row)


async def tokens(connection: Connection) -> list[TokenRow]:
    """Every API token, newest first."""
    cursor = await connection.execute(
        """
        select id::text, name, scopes, created_at, last_used_at, expires_at from api_tokens
        order by created_at desc, name
        """
    )
    return [TokenRow(**row) for row in await cursor.fetchall()]


async def use_token(connection: Connection, secret_sha256: bytes) -> TokenRow | None:
    """The token of a secret; None when it was deleted or has expired."""
    cursor = await connection.execute(
        """
        select id::text, name, scopes, created_at, last_used_at, expires_at from api_tokens
        where secret_sha256 = %s and (expires_at is null or expires_at > now())
        """,
        (secret_sha256,),
    )
    row = await cursor.fetchone()
    if row is None:
        return None
    await connection.execute(
        """
        update api_tokens set last_used_at = now()
        where secret_sha256 = %s and (last_used_at is null or last_used_at < now() - %s)
        """,
        (secret_sha256, _TOUCH_AFTER),
    )
    return TokenRow(**row)


async def delete_token(connection: Connection, token_id: str) -> str | None:
    """Delete a token; returns its name, None when there is no such token."""
    cursor = await connection.execute(
        "delete from api_tokens where id::text = %s returning name", (token_id,)
    )
    row = await cursor.fetchone()
    return None if row is None else str(row["name"])


async def record_access(
    connection: Connection,
    event: AccessEvent,
    *,
    kind: str,
    principal_id: str = "",
    token_name: str = "",
    address: str = "",
    about: str = "",
) -> None:
    """Add an entry to the access audit (GTW-036). Never a secret."""
    await connection.execute(
        """
        insert into audit.access (event, kind, principal_id, token_name, address, about)
        values (%s, %s, %s, %s, %s, %s)
        """,
        (event, kind, principal_id, token_name, address, about),
    )

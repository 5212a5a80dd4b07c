"""API tokens: made by the owner for programs, shown once (GTW-030 to 032)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from services.common.api import TOKEN_SCOPES
from services.common.errors import Conflict, Invalid, LimitReached, NotFound
from services.orchestrator.access.audit import AccessAudit
from services.orchestrator.access.principal import Principal
from services.orchestrator.access.secrets import digest, new_secret
from services.orchestrator.store import access
from services.orchestrator.store.access import TokenRow
from services.orchestrator.store.pool import Database

START = "crew_"
MAX_TOKENS = 100
MAX_NAME_CHARS = 64
MAX_DAYS = 3650


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made. `secret` is shown this once."""

    row: TokenRow
    secret: str


class ApiTokens:
    """Makes, lists, checks and deletes API tokens.

    Args:
        database: Where they are kept, hashed.
        audit: The record of access.
    """

    def __init__(self, database: Database, audit: AccessAudit) -> None:
        self._database = database
        self._audit = audit

    async def create(
        self, name: str, scopes: Sequence[str], expires_in_days: int | None, who: Principal
    ) -> NewToken:
        """Make a token.

        Args:
            name: Shown in lists, in the audit and as the one who decided; 1 to 64 printable characters.
            scopes: What it may do; at least one of `TOKEN_SCOPES`.
            expires_in_days: 1 to 3650; None for one that does not expire.
            who: The owner.

        Raises:
            Invalid: A value is outside of these.
            Conflict: A token of that name exists.
            LimitReached: There are 100 tokens.
        """
        name = name.strip()
        if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
            raise Invalid("TOKEN_NAME", "error.access.token_name", most=MAX_NAME_CHARS)
        chosen = [scope for scope in TOKEN_SCOPES if scope in scopes]
        if not chosen or set(scopes) - set(TOKEN_SCOPES):
            raise Invalid("TOKEN_SCOPES", "error.access.token_scopes", scopes=", ".join(TOKEN_SCOPES))
        if expires_in_days is not None and not 1 <= expires_in_days <= MAX_DAYS:
            raise Invalid("TOKEN_DAYS", "error.access.token_days", most=MAX_DAYS)
        secret = START + new_secret()
        lasts = None if expires_in_days is None else timedelta(days=expires_in_days)
        async with self._database.transaction() as connection:
            if len(await access.tokens(connection)) >= MAX_TOKENS:
                raise LimitReached("TOKENS_FULL", "error.access.tokens_full", most=MAX_TOKENS)
            row = await access.add_token(connection, str(uuid.uuid4()), name, digest(secret), chosen, lasts)
        if row is None:
            raise Conflict("TOKEN_NAME_IN_USE", "error.access.token_name_in_use", name=name)
        await self._audit.record("token_created", who, f"{name}: {' '.join(chosen)}")
        return NewToken(row, secret)

    async def list(self) -> list[TokenRow]:
        """Every token, newest first, without its secret."""
        async with self._database.connection() as connection:
            return await access.tokens(connection)

    async def delete(self, token_id: str, who: Principal) -> None:
        """Delete a token; it stops working at once.

        Raises:
            NotFound: There is none of that id.
        """
        async with self._database.connection() as connection:
            name = await access.delete_token(connection, token_id)
        if name is None:
            raise NotFound("NO_TOKEN", "error.access.no_token")
        await self._audit.record("token_deleted", who, name)

    async def verify(self, secret: str, address: str) -> Principal | None:
        """Who shows the token; None when it is not, or not any more, valid."""
        if not secret.startswith(START):
            return None
        async with self._database.connection() as connection:
            row = await access.use_token(connection, digest(secret))
        if row is None:
            return None
        return Principal(
            "token",
            row.id,
            name=row.name,
            scopes=tuple(row.scopes),
            address=address,
            expires_at=row.expires_at,
        )

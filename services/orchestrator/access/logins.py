"""The owner's login: password, first set-up, sessions."""

from __future__ import annotations

import ipaddress
import math
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.common.api import OWNER_SCOPES
from services.common.errors import LimitReached, Unauthenticated
from services.common.times import utc_now
from services.orchestrator.access.audit import AccessAudit
from services.orchestrator.access.passwords import Passwords, same
from services.orchestrator.access.principal import NOBODY, Principal
from services.orchestrator.access.secrets import digest, new_secret
from services.orchestrator.store import access
from services.orchestrator.store.pool import Database

SESSION_LASTS = timedelta(days=30)
SETUP_LASTS = timedelta(hours=24)
_MAX_SESSIONS = 200
# One network of a home or of a provider's customer.
_IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True)
class Opened:
    """A secret that was just made, and until when it is valid."""

    secret: str
    expires_at: datetime


class Logins:
    """Passwords against sessions.

    Args:
        database: Where credentials are kept.
        passwords: Hashes and checks.
        audit: The record of access.
        owner_token: ``MY_AGENT_OWNER_TOKEN``: works like the password, whether one is set or not.
    """

    def __init__(
        self, database: Database, passwords: Passwords, audit: AccessAudit, *, owner_token: str | None = None
    ) -> None:
        self._database = database
        self._passwords = passwords
        self._audit = audit
        self._owner_token = owner_token or None

    async def log_in(self, password: str, address: str) -> Opened:
        """Begin a session.

        Raises:
            Unauthenticated: The password is wrong, or none is set: the same words after the same time.
            LimitReached: Five attempts from this address failed within a minute (GTW-029).
        """
        who = Principal(NOBODY.kind, address=address)
        await self._begin_attempt(who)
        async with self._database.connection() as connection:
            hashed = await access.password_hash(connection)
        right = await self._passwords.verify(password, hashed)
        # Both are compared always, so that the time does not tell which of them is set.
        right_token = same(password, self._owner_token or new_secret())
        if not (right or right_token):
            await self._audit.record("login_failed", who)
            raise Unauthenticated("WRONG_PASSWORD", "error.access.wrong_password")
        if right and hashed is not None and self._passwords.outdated(hashed):
            renewed = await self._passwords.hash(password)
            async with self._database.connection() as connection:
                await access.rehash_password(connection, hashed, renewed)
        return await self._open_session("login", address)

    async def open_set_up(self) -> Opened | None:
        """A token of the first run while the owner has no credential; None when there is one."""
        if self._owner_token is not None:
            return None
        opened = Opened(new_secret(), utc_now() + SETUP_LASTS)
        async with self._database.transaction() as connection:
            if await access.password_hash(connection) is not None:
                return None
            await access.add_setup_token(connection, digest(opened.secret), SETUP_LASTS)
        return opened

    async def set_up(self, setup_token: str, password: str, address: str) -> Opened:
        """Set the first password with the token of the log, which works once, and begin a session.

        Raises:
            Unauthenticated: The token is not valid, or there is a password already.
            Invalid: The password is too short or too long; the token stays valid.
            LimitReached: Too many attempts from this address failed.
        """
        who = Principal(NOBODY.kind, address=address)
        await self._begin_attempt(who)
        hashed = await self._passwords.hash(password)
        async with self._database.transaction() as connection:
            taken = await access.take_setup_token(connection, digest(setup_token))
            if taken:
                await access.set_password(connection, hashed)
        if not taken:
            await self._audit.record("set_up_failed", who)
            raise Unauthenticated("WRONG_SETUP_TOKEN", "error.access.wrong_setup_token")
        return await self._open_session("set_up", address)

    async def set_password(self, password: str, who: Principal) -> None:
        """Replace the password; every session ends.

        Raises:
            Invalid: It is too short or too long.
        """
        hashed = await self._passwords.hash(password)
        async with self._database.transaction() as connection:
            await access.set_password(connection, hashed)
        await self._audit.record("password_set", who)

    async def verify(self, secret: str, address: str) -> Principal | None:
        """The owner behind a session's secret, the session prolonged; None when it has ended."""
        async with self._database.connection() as connection:
            session = await access.use_session(connection, digest(secret), SESSION_LASTS)
        if session is None:
            return None
        return _owner(session.id, address, session.expires_at)

    async def log_out(self, secret: str, address: str) -> None:
        """End the session of a secret; nothing happens when it has ended before."""
        async with self._database.connection() as connection:
            ended = await access.end_session(connection, digest(secret))
        if ended is not None:
            await self._audit.record("logout", _owner(ended, address))

    async def end_others(self, who: Principal) -> None:
        """End every session but the caller's own."""
        async with self._database.connection() as connection:
            ended = await access.end_other_sessions(connection, who.id if who.kind == "session" else None)
        await self._audit.record("sessions_ended", who, str(ended))

    async def _begin_attempt(self, who: Principal) -> None:
        async with self._database.transaction() as connection:
            blocked = await access.begin_attempt(connection, network_of(who.address))
        if blocked > 0:
            await self._audit.blocked(who)
            raise LimitReached(
                "LOGINS_FAILED",
                "error.access.blocked",
                seconds=math.ceil(blocked),
                detail={"retry_after_seconds": math.ceil(blocked)},
            )

    async def _open_session(self, event: access.AccessEvent, address: str) -> Opened:
        session_id, secret = str(uuid.uuid4()), new_secret()
        async with self._database.transaction() as connection:
            await access.forget_failures(connection, network_of(address))
            expires_at = await access.add_session(
                connection, session_id, digest(secret), address, SESSION_LASTS, _MAX_SESSIONS
            )
        await self._audit.record(event, _owner(session_id, address))
        return Opened(secret, expires_at)


def network_of(address: str) -> str:
    """What counts as one caller: an IPv4 address, or a /64 of IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:100]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((int(parsed), _IPV6_PREFIX), strict=False))
    return str(parsed)


def _owner(session_id: str, address: str, expires_at: datetime | None = None) -> Principal:
    return Principal(
        "session", session_id, name="owner", scopes=OWNER_SCOPES, address=address, expires_at=expires_at
    )

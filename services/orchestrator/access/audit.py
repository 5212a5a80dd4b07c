"""The record of who came in, who did not, and what was refused to whom (GTW-036)."""

from __future__ import annotations

import time
from collections import OrderedDict

from services.orchestrator.access.principal import Principal
from services.orchestrator.store import access
from services.orchestrator.store.pool import Database

# The same refusal of the same caller is recorded once in that time, so that a loop of a broken
# script does not bury the rest.
_SAME_REFUSAL_SECONDS = 60.0
_MOST_REMEMBERED = 500


class AccessAudit:
    """Adds to the access audit.

    Args:
        database: Where it is kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._refused: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    async def record(self, event: access.AccessEvent, who: Principal, about: str = "") -> None:
        """Add an entry. `about` names what it is about and holds no secret."""
        async with self._database.connection() as connection:
            await access.record_access(
                connection,
                event,
                kind=who.kind,
                principal_id=who.id,
                token_name=who.name if who.kind == "token" else "",
                address=who.address,
                about=about,
            )

    async def denied(self, who: Principal, scope: str, method: str) -> None:
        """Record that `who` lacks `scope` for `method`; the same again within a minute is not."""
        if self._is_news(who, method):
            await self.record("scope_denied", who, f"{scope} {method}")

    async def blocked(self, who: Principal) -> None:
        """Record that logins from the address of `who` are refused for now, once a minute."""
        if self._is_news(who, "login"):
            await self.record("login_blocked", who)

    def _is_news(self, who: Principal, what: str) -> bool:
        key = (who.kind, who.id or who.address, what)
        now = time.monotonic()
        if now - self._refused.get(key, float("-inf")) < _SAME_REFUSAL_SECONDS:
            return False
        self._refused[key] = now
        self._refused.move_to_end(key)
        if len(self._refused) > _MOST_REMEMBERED:
            self._refused.popitem(last=False)
        return True

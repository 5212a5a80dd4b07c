"""What a script keeps with `store` and reads with `load` (SCR-299 to 338).

The script works on a copy that it is given at its first touch; what it stored is checked here again
and applied once, at its end, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.common.toolhost import exact_json
from services.common.wording import Locale, load
from services.orchestrator.scripts.limits import KEY_CHARS, STORE_CHARS, VALUE_CHARS
from services.orchestrator.store import scripts
from services.orchestrator.store.pool import Database
from services.orchestrator.store.scripts import StoreName, Write

# No write of a script that keeps to the ceiling has more: a key and its value take two characters.
_MOST_WRITES = STORE_CHARS


class NotKept(Exception):
    """Nothing of the script's writes was applied; `text` says why, for the model."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A store as it was when the script first touched it."""

    entries: Sequence[tuple[str, str]]
    chars: int


class Notebook:
    """The store of one script.

    Args:
        database: Where it is kept.
        name: Whose store, and which.
        generation: Of the agent, when the script began (SCR-338).
        locale: Of the sentences.
    """

    def __init__(self, database: Database, name: StoreName, generation: int, locale: Locale) -> None:
        self._database = database
        self._name = name
        self._generation = generation
        self._locale: Locale = locale
        self._touched = False
        self._removed = False

    @classmethod
    async def of(cls, database: Database, name: StoreName, locale: Locale) -> Notebook:
        """The notebook of a script that begins now."""
        async with database.connection() as connection:
            generation = await scripts.generation(connection, name.agent_id)
        return cls(database, name, generation, locale)

    @property
    def generation(self) -> int:
        """Of the agent, when the script began."""
        return self._generation

    def opened_before(self, generation: int) -> None:
        """The script opened it already, as one of an agent of this generation."""
        self._touched, self._generation = True, generation

    async def open(self) -> Snapshot:
        """The copy that the script goes on with (SCR-332, SCR-336)."""
        self._touched = True
        async with self._database.transaction() as connection:
            entries = await scripts.entries(connection, self._name, generation=self._generation)
        if entries is None:
            self._removed, entries = True, []
        return Snapshot(entries, sum(len(key) + len(text) for key, text in entries))

    async def apply(self, writes: Sequence[Write]) -> None:
        """Keep what the script stored, all of it at once.

        Raises:
            NotKept: The agent was removed, or the store has no room for all of it.
            ValueError: A write that no script may make: the sandbox did not keep to its part.
        """
        _check(writes, touched=self._touched)
        if self._removed:
            raise NotKept(self._text("removed"))
        if not self._touched:
            return
        async with self._database.transaction() as connection:
            end = await scripts.apply(
                connection, self._name, writes, generation=self._generation, most_chars=STORE_CHARS
            )
        match end:
            case scripts.Removed():
                raise NotKept(self._text("removed"))
            case scripts.TooLarge(chars=chars):
                why = self._text("full", chars=chars, limit=STORE_CHARS)
                raise NotKept(self._text("not_kept", why=why))
            case scripts.Applied():
                return

    def _text(self, key: str, **values: object) -> str:
        return load("orchestrator").text(self._locale, f"scripts.store.{key}", **values)


def _check(writes: Sequence[Write], *, touched: bool) -> None:
    """Hold the writes against what any script may keep (SCR-265)."""
    if writes and not touched:
        raise ValueError("writes to a store that was never opened")
    if len(writes) > _MOST_WRITES or len({write.key for write in writes}) != len(writes):
        raise ValueError("too many writes, or two of one key")
    for write in writes:
        if not 0 < len(write.key) <= KEY_CHARS:
            raise ValueError("a key of no allowed length")
        if write.json is None:
            continue
        if len(write.json) > VALUE_CHARS or "\0" in write.json:
            raise ValueError("a value of no allowed length")
        exact_json.loads(write.json)

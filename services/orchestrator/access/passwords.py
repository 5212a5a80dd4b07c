"""The owner's password: hashing and checking, off the event loop and never many at once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from services.common.errors import Invalid, LimitReached

T = TypeVar("T")

MIN_CHARS = 8
MAX_CHARS = 1_000
# Each takes 64 MiB and a core for its time.
_AT_ONCE = 2
_MOST_WAITING = 16


class Passwords:
    """Argon2id with the parameters that RFC 9106 gives for memory-bound machines (GTW-025).

    Args:
        hasher: Other parameters, for tests.
    """

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0
        # What a password is checked against where none is set, so that it takes as long (GTW-029).
        self._nothing: str | None = None

    async def hash(self, password: str) -> str:
        """The hash of a new password.

        Raises:
            Invalid: It is too short or too long.
            LimitReached: Too many passwords are being hashed.
        """
        if not MIN_CHARS <= len(password) <= MAX_CHARS:
            raise Invalid("PASSWORD_LENGTH", "error.access.password_length", least=MIN_CHARS, most=MAX_CHARS)
        return await self._threaded(lambda: self._hasher.hash(password))

    async def verify(self, password: str, hashed: str | None) -> bool:
        """Whether `password` is the one; without a hash it is none, after the same time.

        Raises:
            LimitReached: Too many passwords are being checked.
        """
        if len(password) > MAX_CHARS:
            password = ""
        return await self._threaded(lambda: self._verify(password, hashed))

    def outdated(self, hashed: str) -> bool:
        """Whether the hash was made with older parameters."""
        return self._hasher.check_needs_rehash(hashed)

    def _verify(self, password: str, hashed: str | None) -> bool:
        if self._nothing is None:
            self._nothing = self._hasher.hash("no password is set")
        try:
            return self._hasher.verify(hashed or self._nothing, password) and hashed is not None
        except (VerificationError, InvalidHashError):
            return False

    async def _threaded(self, work: Callable[[], T]) -> T:
        if self._waiting >= _MOST_WAITING:
            raise LimitReached("LOGINS_BUSY", "error.access.busy")
        self._waiting += 1
        try:
            async with self._slots:
                return await asyncio.to_thread(work)
        finally:
            self._waiting -= 1


def same(one: str, other: str) -> bool:
    """Whether two secrets are equal, in a time that tells nothing of either."""
    return hmac.compare_digest(hashlib.sha256(one.encode()).digest(), hashlib.sha256(other.encode()).digest())

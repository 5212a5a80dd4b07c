"""What the orchestrator says about credentials, kept for a moment.

Every request shows a session or a token. Asking the orchestrator for each would double the calls,
so an answer is kept for `KEEP_SECONDS`; whatever this gateway itself ends is forgotten at once, and
a stream asks again as long as it is open (GTW-030: closed within 5 s).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import grpc.aio
from crew.v1 import auth_pb2

KEEP_SECONDS = 2.0
_MOST_KEPT = 1_000

Verify = Callable[[auth_pb2.VerifyRequest], Awaitable[auth_pb2.Principal]]


@dataclass(frozen=True, slots=True)
class Credential:
    """What a caller shows: the secret of a session's cookie or an API token."""

    kind: str
    secret: str

    @property
    def digest(self) -> bytes:
        """Stands for the secret in memory that outlives the request."""
        return hashlib.sha256(f"{self.kind}:{self.secret}".encode("utf-8", "surrogatepass")).digest()

    def request(self, address: str) -> auth_pb2.VerifyRequest:
        """The question to the orchestrator."""
        if self.kind == "session":
            return auth_pb2.VerifyRequest(session=self.secret, address=address)
        return auth_pb2.VerifyRequest(token=self.secret, address=address)


class Credentials:
    """Principals by credential.

    Args:
        verify: Asks the orchestrator; a principal without a kind means that the credential is not valid.
        keep_seconds: How long an answer counts.
    """

    def __init__(self, verify: Verify, keep_seconds: float = KEEP_SECONDS) -> None:
        self._verify = verify
        self._keep_seconds = keep_seconds
        self._kept: dict[bytes, tuple[float, auth_pb2.Principal]] = {}
        self._asking: dict[bytes, asyncio.Task[auth_pb2.Principal | None]] = {}
        self._forgotten = asyncio.Event()

    async def principal(self, credential: Credential, address: str) -> auth_pb2.Principal | None:
        """Who holds the credential; None when it is not valid.

        Raises:
            AioRpcError: The orchestrator cannot be asked.
        """
        key = credential.digest
        kept = self._kept.get(key)
        if kept is not None and kept[0] > time.monotonic():
            return kept[1]
        asking = self._asking.get(key)
        if asking is None:
            asking = asyncio.create_task(self._ask(key, credential, address))
            self._asking[key] = asking
            asking.add_done_callback(lambda task: self._asked(key, task))
        return await asyncio.shield(asking)

    def forget(self) -> None:
        """Drop every answer: a credential was ended. Open streams ask again now."""
        self._kept.clear()
        # An answer on its way was given before the end.
        self._asking.clear()
        self._forgotten.set()
        self._forgotten = asyncio.Event()

    async def until_ended(self, credential: Credential, address: str) -> None:
        """Return when the credential is not valid any more.

        While the orchestrator cannot be asked nothing is decided; a stream ends with it anyway.
        """
        while True:
            forgotten = self._forgotten
            try:
                if await self.principal(credential, address) is None:
                    return
            except grpc.aio.AioRpcError:
                pass
            try:
                await asyncio.wait_for(forgotten.wait(), self._keep_seconds)
            except TimeoutError:
                continue

    async def _ask(self, key: bytes, credential: Credential, address: str) -> auth_pb2.Principal | None:
        asked_at = self._forgotten
        principal = await self._verify(credential.request(address))
        if not principal.kind:
            self._kept.pop(key, None)
            return None
        if asked_at is self._forgotten:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = (time.monotonic() + self._keep_seconds, principal)
        return principal

    def _asked(self, key: bytes, task: asyncio.Task[auth_pb2.Principal | None]) -> None:
        if self._asking.get(key) is task:
            del self._asking[key]
        if not task.cancelled():
            # Whoever asked has been told; a request that left meanwhile is no fault.
            task.exception()

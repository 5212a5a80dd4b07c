"""What every provider offers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from services.orchestrator.models.assembly import Chunk
from services.orchestrator.models.contract import ModelRequest


class Provider(Protocol):
    """Streams replies in the shape of chat completions."""

    @property
    def name(self) -> str:
        """The first part of its routes."""

    @property
    def missing_key(self) -> str:
        """The environment variable it lacks; "" when it can be asked."""

    def origin(self, model: str) -> str:
        """Who may have the opaque fields of this model's replies back (FLD-001)."""

    def chunks(self, request: ModelRequest, model: str) -> AsyncGenerator[Chunk, None]:
        """Ask `model` and yield the chunks of its reply; ends when the reply is whole.

        Raises:
            AttemptFailed: It did not answer, or not to the end.
            RequestTooLarge: The request passes the limit and was not sent.
        """

    async def context_windows(self) -> dict[str, int]:
        """Tokens that fit into each model, as far as the provider tells (FLD-003)."""


class RequestTooLarge(Exception):
    """A request over the limit (FLD-015).

    Args:
        size: Its size in bytes.
        limit: The limit in bytes.
    """

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"{size} of {limit} bytes")
        self.size = size
        self.limit = limit

"""Limits on what requests ask for."""

from __future__ import annotations

from uuid import UUID

from google.protobuf.message import Message

from services.common.errors import Invalid, NotFound


def limit_of(request: Message, *, default: int, most: int = 500) -> int:
    """The field `limit`, or its default.

    Raises:
        Invalid: Outside 1 to `most` (TRN-329).
    """
    if not request.HasField("limit"):
        return default
    limit: int = request.limit  # type: ignore[attr-defined]
    if not 1 <= limit <= most:
        raise Invalid("BAD_LIMIT", "error.bad_limit", most=most)
    return limit


def id_of(kind: str, text: str) -> str:
    """An id as a caller wrote it, in the form the store uses.

    Args:
        kind: ``conversation``, ``run``, ``approval``: what the refusal names.
        text: What was written.

    Raises:
        NotFound: It has not the form of an id, so nothing has it (GTW-041).
    """
    try:
        return str(UUID(text))
    except ValueError:
        raise NotFound(f"NO_{kind.upper()}", f"error.no_{kind}", id=text[:80]) from None

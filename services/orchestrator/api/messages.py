"""The service crew.v1.Messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import grpc.aio
import psycopg
from crew.v1 import messages_pb2 as pb
from crew.v1 import messages_pb2_grpc

from services.common.errors import Invalid, Unavailable
from services.common.storable import storable
from services.common.times import iso
from services.orchestrator.api.checks import limit_of
from services.orchestrator.api.snippets import folded, snippet
from services.orchestrator.store import search
from services.orchestrator.store.pool import Database

Context = grpc.aio.ServicerContext[Any, Any]

_QUERY_CHARS = 500
_TERMS = 16


class MessagesServicer(messages_pb2_grpc.MessagesServicer):
    """Finds what people and agents said."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def Search(self, request: pb.SearchMessagesRequest, context: Context) -> pb.SearchMessagesReply:
        """Messages that hold every word of `q`; none for an empty one (TRN-335 to 343)."""
        limit = limit_of(request, default=20, most=50)
        terms = _terms(request.q)
        if not terms:
            return pb.SearchMessagesReply()
        agent_id = request.agent_id if request.HasField("agent_id") else None
        try:
            async with self._database.snapshot() as connection:
                found = await search.find(connection, terms, agent_id=agent_id, limit=limit)
        except psycopg.errors.QueryCanceled:
            raise Unavailable("SEARCH_TOO_LONG", "error.search_too_long") from None
        # Long messages take milliseconds each.
        return pb.SearchMessagesReply(hits=await asyncio.to_thread(_hits, found, terms))


def _hits(found: Sequence[search.Found], terms: Sequence[str]) -> list[pb.MessageHit]:
    return [
        pb.MessageHit(
            conversation_id=one.conversation_id,
            title=one.title,
            message_id=one.message_id,
            agent_id=one.agent_id,
            role=one.role,
            snippet=snippet(one.content, terms),
            created_at=iso(one.created_at),
        )
        for one in found
    ]


def _terms(query: str) -> list[str]:
    """The words of a query that have something to compare.

    Raises:
        Invalid: Too long, or too many.
    """
    terms = [term for term in dict.fromkeys(storable(query).text.split()) if folded(term)]
    if len(query) > _QUERY_CHARS or len(terms) > _TERMS:
        raise Invalid("QUERY_TOO_LONG", "error.query_too_long", chars=_QUERY_CHARS, terms=_TERMS)
    return terms

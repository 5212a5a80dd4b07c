"""The service crew.v1.ScriptStores (SCR-322 to 331)."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Literal

import grpc.aio
from crew.v1 import script_stores_pb2 as pb
from crew.v1 import script_stores_pb2_grpc

from services.common.errors import Invalid, NotFound
from services.orchestrator.agents.agents import Agents
from services.orchestrator.scripts.limits import STORE_CHARS
from services.orchestrator.store import scripts
from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.store.scripts import Kept

Context = grpc.aio.ServicerContext[Any, Any]

Kind = Literal["job", "conv", "other"]
_PREFIXES: dict[str, Kind] = {"job:": "job", "conv:": "conv"}
_PREVIEW_CHARS = 200


class ScriptStoresServicer(script_stores_pb2_grpc.ScriptStoresServicer):
    """What scripts keep, as a person sees it."""

    def __init__(self, *, database: Database, agents: Agents) -> None:
        self._database = database
        self._agents = agents

    async def List(self, request: pb.ListScriptStoresRequest, context: Context) -> pb.ListScriptStoresReply:
        """Every store of one agent, by name, its keys by name."""
        self._check_agent(request.id)
        async with self._database.snapshot() as connection:
            values = await scripts.all_of(connection, request.id)
            titles = await scripts.conversation_titles(connection, request.id)
        reply = pb.ListScriptStoresReply(limit_chars=STORE_CHARS)
        for namespace, kept in groupby(values, key=lambda value: value.namespace):
            reply.namespaces.append(_view(namespace, list(kept), titles))
        return reply

    async def Value(self, request: pb.ScriptValueRequest, context: Context) -> pb.ScriptValue:
        """One value whole."""
        self._check_agent(request.id)
        namespace, key = _given(request, "namespace"), _given(request, "key")
        async with self._database.connection() as connection:
            found = await self._find(connection, request.id, namespace, key)
        return pb.ScriptValue(
            namespace=namespace,
            key=key,
            text=found.json,
            chars=len(found.json),
            updated_at=_time(found.updated_at),
        )

    async def Forget(
        self, request: pb.ForgetScriptValuesRequest, context: Context
    ) -> pb.ForgetScriptValuesReply:
        """Forget a key, or a whole store; deleting nothing is no error."""
        self._check_agent(request.id)
        namespace = _given(request, "namespace")
        key = request.key if request.HasField("key") else None
        async with self._database.connection() as connection:
            deleted = await scripts.forget(connection, request.id, namespace, key)
        return pb.ForgetScriptValuesReply(deleted=deleted)

    async def _find(self, connection: Connection, agent_id: str, namespace: str, key: str) -> Kept:
        found = await scripts.value(connection, agent_id, namespace, key)
        if found is None:
            raise NotFound("NO_VALUE", "error.no_script_value")
        return found

    def _check_agent(self, agent_id: str) -> None:
        if self._agents.get(agent_id) is None:
            raise NotFound("NO_AGENT", "error.no_agent", id=agent_id[:80])


def _given(request: pb.ScriptValueRequest | pb.ForgetScriptValuesRequest, name: str) -> str:
    """A parameter that has to be there: no single call empties all stores (SCR-330)."""
    if not request.HasField(name):
        raise Invalid("MISSING_PARAMETER", "error.missing_parameter", name=name)
    return str(getattr(request, name))


def _view(namespace: str, kept: list[Kept], titles: dict[str, str]) -> pb.ScriptStore:
    prefix = next((prefix for prefix in _PREFIXES if namespace.startswith(prefix)), "")
    kind: Kind = _PREFIXES.get(prefix, "other")
    ref = namespace.removeprefix(prefix)
    view = pb.ScriptStore(
        namespace=namespace,
        kind=kind,
        ref=ref,
        # No schedule is a job of an agent yet, so a job's store has no owner (SCR-326).
        orphan=kind == "job" or (kind == "conv" and ref not in titles),
        chars=sum(len(value.key) + len(value.json) for value in kept),
        entries=[
            pb.ScriptStoreEntry(
                key=value.key,
                preview=_preview(value.json),
                chars=len(value.json),
                updated_at=_time(value.updated_at),
            )
            for value in kept
        ],
    )
    if kind == "conv" and titles.get(ref, "").strip():
        view.title = titles[ref]
    return view


def _time(moment: datetime) -> str:
    """UTC in whole seconds, as this route writes it (SCR-322)."""
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _preview(text: str) -> str:
    return text if len(text) <= _PREVIEW_CHARS else f"{text[:_PREVIEW_CHARS]}…"

"""The crew itself: its home, its settings, its database and its services."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path

import grpc
import psycopg
from crew.v1 import system_pb2, system_pb2_grpc

from services.cli import orchestrator
from services.cli.doctor.findings import Finding, bad, good, note
from services.cli.home import Layout, check_writable
from services.cli.postgres.binaries import MAJOR, program
from services.cli.postgres.running import answers
from services.cli.texts import language
from services.common.settings import (
    GatewaySettings,
    OrchestratorSettings,
    ScriptSandboxSettings,
    ToolsSettings,
)
from services.common.settings.config import CrewConfig, FromEnvironment
from services.common.start import StartError
from services.orchestrator.store.migrate import schema_is_current

_SECONDS = 5.0
_PREFIX = "MY_AGENT_"
# Read by the command line alone.
_OTHER_VARIABLES = frozenset(
    {"MY_AGENT_HOME", "MY_AGENT_TOKEN", "MY_AGENT_VARIABLES_FD", "MY_AGENT_MIGRATION_DATABASE_URL"}
)


def folders(layout: Layout) -> Iterator[Finding]:
    """Whether the home and the workspaces can be written, and by whom they are owned."""
    if not layout.home.exists():
        yield note("no_home", home=layout.home)
        return
    for folder in (layout.home, layout.home / "workspace", layout.home / "agents"):
        if not folder.exists():
            continue
        try:
            check_writable(folder)
        except StartError as error:
            yield bad("folder", problem=error.text(language()))
        else:
            found = folder.stat()
            yield good("folder_writable", folder=folder, owner=f"{found.st_uid}:{found.st_gid}")
    yield from _private(layout.env)


def _private(path: Path) -> Iterator[Finding]:
    try:
        mode = path.stat().st_mode & 0o777
    except FileNotFoundError:
        return
    if mode & 0o077:
        yield bad("env_open", file=path, mode=f"{mode:o}")
    else:
        yield good("env_private", file=path)


def misspelt(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Variables that look like settings and are none."""
    known = set(_OTHER_VARIABLES)
    for model in (GatewaySettings, OrchestratorSettings, ScriptSandboxSettings, ToolsSettings):
        known |= {f"MY_AGENT_{name.upper()}" for name in model.model_fields}
    for info in CrewConfig.model_fields.values():
        known |= {mark.name for mark in info.metadata if isinstance(mark, FromEnvironment)}
    for name in sorted(name for name in environ if name.startswith(_PREFIX) and name not in known):
        # Without the prefix, which would make everything look alike.
        names = {other.removeprefix(_PREFIX): other for other in known}
        near = difflib.get_close_matches(name.removeprefix(_PREFIX), names, n=1)
        if near:
            yield note("variable_near", variable=name, nearest=names[near[0]])
        else:
            yield note("variable", variable=name)


def database(layout: Layout) -> Iterator[Finding]:
    """Postgres: its programs, its data, its schema."""
    try:
        yield good("postgres", path=program("postgres").parent, major=MAJOR)
        layout.cluster.check_version()
    except StartError as error:
        yield bad("folder", problem=error.text(language()))
        return
    if not layout.cluster.exists:
        yield note("no_database")
        return
    if not answers(layout.cluster):
        yield note("database_stopped")
        return
    with psycopg.connect(layout.cluster.url("crew_app")) as connection:
        try:
            current = schema_is_current(connection)
        except StartError as error:
            yield bad("folder", problem=error.text(language()))
        else:
            yield good("schema") if current else bad("schema_old")


def services() -> Iterator[Finding]:
    """What the running crew says of itself."""
    try:
        health, connections = asyncio.run(_asked())
    except grpc.aio.AioRpcError as error:
        yield bad("no_answer", problem=error.details() or error.code().name)
        return
    except StartError as error:
        yield note("folder", problem=error.text(language()))
        return
    for service in health.services:
        if service.reachable:
            yield good("service", name=service.name)
        else:
            yield bad("service_down", name=service.name, problem=service.note)
    for host in connections.hosts:
        if host.isolation:
            yield good("isolation", name=host.name, isolation=host.isolation, reason=host.isolation_note)
    for state in connections.route_states:
        yield (
            good("route", route=state.route)
            if state.usable
            else bad("route_down", route=state.route, problem=state.note)
        )


async def _asked() -> tuple[system_pb2.HealthReply, system_pb2.ConnectionsReply]:
    async with orchestrator.channel() as channel:
        stub = system_pb2_grpc.SystemStub(channel)
        said = orchestrator.spoken()
        health = await stub.Health(system_pb2.HealthRequest(), metadata=said, timeout=_SECONDS)
        connections = await stub.Connections(system_pb2.ConnectionsRequest(), metadata=said, timeout=_SECONDS)
    return health, connections

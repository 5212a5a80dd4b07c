"""A login from the browser to the database and back, with the scope check behind the gateway's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
import httpx
import psycopg
import pytest
from argon2 import PasswordHasher
from crew.v1 import agents_pb2, agents_pb2_grpc, auth_pb2, auth_pb2_grpc, crew_pb2, crew_pb2_grpc

from services.common.api import PRINCIPAL_METADATA
from services.common.rpc import DirectedChannel
from services.common.wording import load
from services.orchestrator.access import ApiTokens, Logins, ScopeGuard
from services.orchestrator.access.audit import AccessAudit
from services.orchestrator.access.passwords import Passwords
from services.orchestrator.api.auth import AuthServicer
from services.orchestrator.store.pool import Database
from tests.fixtures.fake_orchestrator import FakeOrchestrator, running
from tests.fixtures.gateway import gateway_before
from tests.fixtures.postgres import ScratchDatabase

PASSWORD = "correct horse battery"


@asynccontextmanager
async def orchestrator(
    scratch: ScratchDatabase, folder: Path
) -> AsyncIterator[tuple[str, FakeOrchestrator, Logins]]:
    database = Database(scratch.url)
    await database.open()
    audit = AccessAudit(database)
    passwords = Passwords(PasswordHasher(time_cost=1, memory_cost=64, parallelism=1))
    logins = Logins(database, passwords, audit)
    servicer = AuthServicer(logins, ApiTokens(database, audit), audit)
    fake = FakeOrchestrator()
    words = load("common", "orchestrator")
    async with running(
        fake, folder, auth=servicer, interceptors=[ScopeGuard(audit)], catalogue=words
    ) as address:
        yield address, fake, logins
    await database.close()


def audited(scratch: ScratchDatabase) -> list[tuple[str, str, str, str]]:
    with psycopg.connect(scratch.superuser_url) as connection:
        return connection.execute(
            "select event, kind, token_name, about from audit.access order by id"
        ).fetchall()


async def printed_link(capsys: pytest.CaptureFixture[str]) -> str:
    printed = ""
    async with asyncio.timeout(30):
        while "#/setup/" not in printed:
            printed += capsys.readouterr().err
            await asyncio.sleep(0.02)
    return printed.partition("#/setup/")[2].split()[0]


@pytest.mark.spec("GTW-025", "GTW-028", "GTW-030", "GTW-031", "GTW-035", "GTW-036", "GTW-043")
async def test_from_the_first_run_to_a_token_that_is_deleted(
    database: ScratchDatabase, run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with (
        orchestrator(database, run_folder) as (address, fake, _),
        gateway_before(address, run_folder, fake, auth="owner") as gateway,
    ):
        setup_token = await printed_link(capsys)
        http = gateway.http
        set_up = {"setup_token": setup_token, "password": PASSWORD}
        assert (await http.post("/api/auth/setup", json={**set_up, "password": "short"})).status_code == 422
        assert (await http.post("/api/auth/setup", json=set_up)).status_code == 204
        http.cookies.clear()
        for _ in range(2):
            wrong = await http.post(
                "/api/auth/login", json={"password": "wrong one"}, headers={"Accept-Language": "vi"}
            )
            assert (wrong.status_code, wrong.json()["detail"]) == (401, "Mật khẩu không đúng.")
        assert (await http.post("/api/auth/login", json={"password": PASSWORD})).status_code == 204
        session = (await http.get("/api/auth/session")).json()
        assert (session["kind"], session["authenticated"]) == ("session", True)
        made = await http.post("/api/auth/tokens", json={"name": "reader", "scopes": ["read"]})
        token = made.json()
        assert made.status_code == 201
        twice = await http.post("/api/auth/tokens", json={"name": "reader", "scopes": ["read"]})
        assert (twice.status_code, "reader" in twice.json()["detail"]) == (409, True)
        async with httpx.AsyncClient(
            base_url=http.base_url, headers={"Authorization": f"Bearer {token['token']}"}, timeout=20
        ) as program:
            assert (await program.get("/api/agents")).status_code == 200
            refused = await program.post("/api/inbound", json={"text": "x"})
            assert (refused.status_code, "chat" in refused.json()["detail"]) == (403, True)
            listed = (await http.get("/api/auth/tokens")).json()
            assert [(one["id"], one["name"], one["scopes"]) for one in listed] == [
                (token["id"], "reader", ["read"])
            ]
            assert listed[0]["last_used_at"]
            assert "token" not in listed[0]
            async with asyncio.timeout(30):
                while not any(event == "scope_denied" for event, *_ in audited(database)):
                    await asyncio.sleep(0.02)
            assert (await http.delete(f"/api/auth/tokens/{token['id']}")).status_code == 204
            assert (await program.get("/api/agents")).status_code == 401
        assert (await http.delete("/api/auth/tokens/none")).status_code == 404
        cookie = dict(http.cookies)["crew_session"]
        assert (await http.delete("/api/auth/sessions")).status_code == 204
        assert (await http.get("/api/agents")).status_code == 200
        assert (await http.post("/api/auth/logout")).status_code == 204
        http.cookies.clear()
        assert (
            await http.get("/api/agents", headers={"Cookie": f"crew_session={cookie}"})
        ).status_code == 401
    record = audited(database)
    assert [event for event, *_ in record] == [
        "set_up",
        "login_failed",
        "login_failed",
        "login",
        "token_created",
        "scope_denied",
        "token_deleted",
        "sessions_ended",
        "logout",
    ]
    assert record[5] == ("scope_denied", "token", "reader", "chat /crew.v1.Turns/Inbound")
    for secret in (PASSWORD, setup_token, token["token"], cookie):
        assert secret not in str(record)
    logged = capsys.readouterr()
    for secret in (PASSWORD, token["token"], cookie):
        assert secret not in logged.out + logged.err


@pytest.mark.spec("GTW-029")
async def test_the_sixth_login_of_a_minute_is_429_with_a_time_to_wait(
    database: ScratchDatabase, run_folder: Path
) -> None:
    async with (
        orchestrator(database, run_folder) as (address, fake, _),
        gateway_before(address, run_folder, fake, auth="owner") as gateway,
    ):
        answers = [
            await gateway.http.post("/api/auth/login", json={"password": f"guess {n}"}) for n in range(6)
        ]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429]
        assert 0 < int(answers[-1].headers["retry-after"]) <= 60
        assert answers[-1].json()["detail"]["error"] == "LOGINS_FAILED"
        assert answers[-1].json()["detail"]["message"]


@pytest.mark.spec("GTW-031", "GTW-033", "GTW-036")
async def test_the_orchestrator_checks_again_what_the_gateway_says(
    database: ScratchDatabase, run_folder: Path
) -> None:
    async with orchestrator(database, run_folder) as (address, fake, _):
        token = (run_folder / "gateway" / "gateway-to-orchestrator.token").read_text().strip()

        def about(*scopes: str) -> tuple[tuple[str, bytes], ...]:
            reader = auth_pb2.Principal(kind="token", id="t", name="reader", scopes=scopes)
            return ((PRINCIPAL_METADATA, reader.SerializeToString()),)

        async with DirectedChannel(address, token=token) as channel:
            agents = agents_pb2_grpc.AgentsStub(channel)
            assert await agents.List(agents_pb2.ListAgentsRequest(), metadata=about("read"))
            tries = [
                (agents.List(agents_pb2.ListAgentsRequest()), grpc.StatusCode.UNAUTHENTICATED),
                (
                    agents.List(agents_pb2.ListAgentsRequest(), metadata=about("chat")),
                    grpc.StatusCode.PERMISSION_DENIED,
                ),
                (
                    auth_pb2_grpc.AuthStub(channel).ListTokens(
                        auth_pb2.ListTokensRequest(), metadata=about("read", "chat", "manage")
                    ),
                    grpc.StatusCode.PERMISSION_DENIED,
                ),
            ]
            for call, code in tries:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call
                assert caught.value.code() == code
            stream = crew_pb2_grpc.CrewStub(channel).Decide(
                crew_pb2.DecideRequest(approval_id="a"), metadata=about("chat")
            )
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stream.read()
            assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
        async with grpc.aio.insecure_channel(address) as stranger:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await agents_pb2_grpc.AgentsStub(stranger).List(
                    agents_pb2.ListAgentsRequest(), metadata=about("read")
                )
            assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
        assert [seen.method for seen in fake.seen] == ["Agents.List"]
    assert {(row[0], row[3]) for row in audited(database)} == {
        ("scope_denied", "read /crew.v1.Agents/List"),
        ("scope_denied", "owner /crew.v1.Auth/ListTokens"),
        ("scope_denied", "approve /crew.v1.Crew/Decide"),
    }

"""The public gRPC port."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from crew.v1 import (
    approvals_pb2,
    auth_pb2,
    auth_pb2_grpc,
    conversations_pb2,
    conversations_pb2_grpc,
    crew_pb2,
    crew_pb2_grpc,
    events_pb2,
)
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from services.common.api import api_methods
from services.common.settings import GatewaySettings
from services.common.start import StartError
from services.common.wording import load
from services.gateway.grpc_forward import credentials_of, peer_address
from tests.fixtures.fake_orchestrator import Turn
from tests.fixtures.gateway import Gateway, gateway_with_fake

TOKEN = "crew_" + "t" * 43
ROOT = Path(__file__).parents[3]


def bearer(token: str = TOKEN, language: str = "en") -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"), ("accept-language", language))


def reason_and_sentence(error: grpc.aio.AioRpcError) -> tuple[str, str]:
    packed = dict(error.trailing_metadata() or ())["grpc-status-details-bin"]
    assert isinstance(packed, bytes)
    reason = sentence = ""
    for detail in status_pb2.Status.FromString(packed).details:
        info, message = error_details_pb2.ErrorInfo(), error_details_pb2.LocalizedMessage()
        if detail.Unpack(info):
            reason = info.reason
        elif detail.Unpack(message):
            sentence = message.message
    return reason, sentence


async def refused(call: Any) -> grpc.aio.AioRpcError:
    answered = _drained(call) if hasattr(call, "read") else call
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await answered
    return caught.value


async def _drained(call: Any) -> None:
    async for _ in call:
        pass


@pytest.mark.spec("GTW-267", "GTW-268")
async def test_health_needs_no_token(guarded: Gateway) -> None:
    async with grpc.aio.insecure_channel(guarded.grpc_address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", "crew.v1.Crew"):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=service), wait_for_ready=True)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.spec("GTW-267")
async def test_reflection_on_loopback_and_only_on_request_elsewhere(run_folder: Path) -> None:
    async def services(gateway: Gateway) -> set[str]:
        async with grpc.aio.insecure_channel(gateway.grpc_address) as channel:
            stub = reflection_pb2_grpc.ServerReflectionStub(channel)
            request = reflection_pb2.ServerReflectionRequest(list_services="")
            call = stub.ServerReflectionInfo(iter([request]))
            answer = await call.read()
            return {service.name for service in answer.list_services_response.service}

    async with gateway_with_fake(run_folder) as gateway:
        found = await services(gateway)
        assert {"crew.v1.Crew", "crew.v1.Turns", "crew.v1.Conversations"} <= found
        assert "crew.v1.ToolHost" not in found
    elsewhere: dict[str, Any] = {"host": "0.0.0.0", "auth": "owner", "grpc_insecure": True}
    async with gateway_with_fake(run_folder, **elsewhere) as gateway:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await services(gateway)
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    async with gateway_with_fake(run_folder, **elsewhere, grpc_reflection=True) as gateway:
        assert "crew.v1.Crew" in await services(gateway)


@pytest.mark.spec("GTW-268", "GTW-279", "GTW-033")
async def test_calls_need_a_token_with_the_scope_of_the_method(guarded: Gateway) -> None:
    guarded.fake.tokens[TOKEN] = ["chat"]
    guarded.fake.turns["c1"] = Turn()
    await guarded.fake.turns["c1"].end("x")
    async with grpc.aio.insecure_channel(guarded.grpc_address) as channel:
        crew = crew_pb2_grpc.CrewStub(channel)
        for metadata in (
            (),
            bearer("crew_wrong"),
            (("authorization", TOKEN),),
            (("cookie", "crew_session=x"),),
        ):
            error = await refused(crew.Stop(crew_pb2.StopRequest(conversation_id="c1"), metadata=metadata))
            assert error.code() == grpc.StatusCode.UNAUTHENTICATED
            reason, sentence = reason_and_sentence(error)
            assert reason in ("NO_CREDENTIAL", "CREDENTIAL_NOT_VALID")
            assert sentence
        decide = crew.Decide(crew_pb2.DecideRequest(approval_id="a"), metadata=bearer(language="vi"))
        error = await refused(decide)
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED
        reason, sentence = reason_and_sentence(error)
        assert reason == "MISSING_SCOPE"
        assert "“approve”" in sentence
        assert "quyền" in sentence
        runs = await refused(crew.ListRuns(crew_pb2.ListRunsRequest(), metadata=bearer()))
        assert runs.code() == grpc.StatusCode.PERMISSION_DENIED
        assert (await crew.Stop(crew_pb2.StopRequest(conversation_id="c1"), metadata=bearer())).cancelled
        sent = [event async for event in crew.Send(crew_pb2.SendRequest(text="x"), metadata=bearer())]
        assert [event.WhichOneof("event") for event in sent] == ["done"]
    principal = guarded.fake.last("Crew.Send").principal
    assert principal is not None
    assert (principal.kind, principal.name, principal.address) == ("token", "script", "127.0.0.1")


async def test_what_the_gateway_asks_for_itself_is_not_forwarded(gateway: Gateway) -> None:
    async with grpc.aio.insecure_channel(gateway.grpc_address) as channel:
        auth = auth_pb2_grpc.AuthStub(channel)
        calls = [
            auth.Login(auth_pb2.LoginRequest(password="correct horse", address="6.6.6.6")),
            auth.Verify(auth_pb2.VerifyRequest(token=TOKEN)),
            auth.OpenSetUp(auth_pb2.OpenSetUpRequest()),
            channel.unary_unary("/crew.v1.ToolHost/Describe")(b""),
        ]
        for call in calls:
            assert (await refused(call)).code() == grpc.StatusCode.UNIMPLEMENTED
    assert not gateway.fake.verified
    for path, method in api_methods().items():
        assert method.scope != "internal" or path.startswith("/crew.v1.Auth/")


async def test_the_principal_cannot_be_brought_along(guarded: Gateway) -> None:
    guarded.fake.tokens[TOKEN] = ["read"]
    forged = auth_pb2.Principal(kind="session", scopes=["owner", "read"]).SerializeToString()
    async with grpc.aio.insecure_channel(guarded.grpc_address) as channel:
        stub = conversations_pb2_grpc.ConversationsStub(channel)
        request = conversations_pb2.ListConversationsRequest()
        error = await refused(stub.List(request, metadata=(("crew-principal-bin", forged),)))
        assert error.code() == grpc.StatusCode.UNAUTHENTICATED
        await stub.List(request, metadata=(*bearer(), ("crew-principal-bin", forged)))
    principal = guarded.fake.last("Conversations.List").principal
    assert principal is not None
    assert principal.kind == "token"


@pytest.mark.spec("GTW-278", "GTW-279")
async def test_errors_keep_their_reason_and_their_language(gateway: Gateway) -> None:
    async with grpc.aio.insecure_channel(gateway.grpc_address) as channel:
        crew = crew_pb2_grpc.CrewStub(channel)
        call = crew.Send(crew_pb2.SendRequest(text="waiting"), metadata=(("accept-language", "vi"),))
        error = await refused(call)
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert reason_and_sentence(error) == ("AWAITING_APPROVAL", "Cuộc trò chuyện đang chờ quyết định.")
        conversations = conversations_pb2_grpc.ConversationsStub(channel)
        missing = await refused(conversations.Get(conversations_pb2.GetConversationRequest(id="x")))
        assert missing.code() == grpc.StatusCode.NOT_FOUND
        assert reason_and_sentence(missing)[0] == "NO_CONVERSATION"


@pytest.mark.spec("GTW-273")
async def test_a_deadline_and_a_client_that_leaves_end_the_stream_and_not_the_turn(gateway: Gateway) -> None:
    turn = gateway.fake.turns["c1"] = Turn()
    await turn.say("x")
    async with grpc.aio.insecure_channel(gateway.grpc_address) as channel:
        crew = crew_pb2_grpc.CrewStub(channel)
        error = await refused(crew.Send(crew_pb2.SendRequest(text="x"), timeout=1, wait_for_ready=True))
        assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        left = crew.Send(crew_pb2.SendRequest(text="x"))
        await left.read()
        assert gateway.fake.watchers
        left.cancel()
        async with asyncio.timeout(30):
            while gateway.fake.watchers:
                await asyncio.sleep(0.02)
        assert not turn.ended


async def test_fields_this_gateway_does_not_know_are_forwarded(gateway: Gateway) -> None:
    gateway.fake.turns["c1"] = Turn()
    await gateway.fake.turns["c1"].end()
    newer = crew_pb2.SendRequest(text="x").SerializeToString() + b"\xc2\x3e\x03new"
    async with grpc.aio.insecure_channel(gateway.grpc_address) as channel:
        call = channel.unary_stream("/crew.v1.Crew/Send")(newer, wait_for_ready=True)
        assert [answer async for answer in call]
    seen = gateway.fake.last("Crew.Send").request
    assert seen.SerializeToString() == newer


@pytest.mark.spec("GTW-269")
def test_in_clear_on_an_address_of_others_the_port_does_not_start(tmp_path: Path) -> None:
    base = {"orchestrator_address": "x:1", "secrets_dir": tmp_path, "auth": "owner"}
    words = load("common", "gateway")
    with pytest.raises(StartError) as caught:
        credentials_of(GatewaySettings(**base, host="0.0.0.0"), words)
    assert "MY_AGENT_GRPC_INSECURE" in caught.value.text("en")
    with pytest.raises(StartError):
        credentials_of(GatewaySettings(**base, grpc_host="192.168.1.2"), words)
    with pytest.raises(StartError):
        credentials_of(GatewaySettings(**base, grpc_tls_cert=tmp_path / "c.pem"), words)
    missing = {"grpc_tls_cert": tmp_path / "c.pem", "grpc_tls_key": tmp_path / "k.pem"}
    with pytest.raises(StartError):
        credentials_of(GatewaySettings(**base, **missing), words)
    assert credentials_of(GatewaySettings(**base, host="0.0.0.0", grpc_insecure=True), words) is None
    assert credentials_of(GatewaySettings(**base), words) is None


@pytest.mark.spec("GTW-269")
async def test_tls(run_folder: Path) -> None:
    cert, key = run_folder / "cert.pem", run_folder / "key.pem"
    made = await asyncio.create_subprocess_exec(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        *("-keyout", str(key), "-out", str(cert)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert await made.wait() == 0
    async with gateway_with_fake(run_folder, grpc_tls_cert=cert, grpc_tls_key=key) as gateway:
        trust = grpc.ssl_channel_credentials(cert.read_bytes())
        async with grpc.aio.secure_channel(gateway.grpc_address, trust) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            answer = await health.Check(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=30)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_grpc_port_others_reach_asks_for_a_token_even_when_the_page_does_not(
    run_folder: Path,
) -> None:
    async with gateway_with_fake(run_folder, grpc_host="0.0.0.0", grpc_insecure=True) as gateway:
        assert (await gateway.http.get("/api/agents")).status_code == 200
        async with grpc.aio.insecure_channel(gateway.grpc_address) as channel:
            call = crew_pb2_grpc.CrewStub(channel).Stop(crew_pb2.StopRequest(), wait_for_ready=True)
            assert (await refused(call)).code() == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:10.0.0.7:1234", "10.0.0.7"),
        ("ipv6:%5B::1%5D:1234", "::1"),
        ("ipv6:[fe80::2]:5", "fe80::2"),
        ("unix:/run/x.sock", ""),
        ("", ""),
    ],
)
def test_addresses_of_peers(peer: str, address: str) -> None:
    assert peer_address(peer) == address


@pytest.mark.spec("GTW-271")
async def test_the_client_of_the_documentation_works(guarded: Gateway, tmp_path: Path) -> None:
    """The program in docs/automation.md, run as it is printed there, in a process of its own."""
    fake = guarded.fake
    fake.tokens[TOKEN] = ["chat", "approve"]
    before, after = Turn(), Turn()
    fake.turns = {"c1": before, "after approval": after}
    await before.say("Let me write that down. ")
    approval = approvals_pb2.Approval(id="a1", tool="workspace_write", arguments='{"path": "notes.md"}')
    await before.emit(approval_required=events_pb2.ApprovalRequired(approval=approval))
    before.ended = True
    await after.say("Written.")
    await after.end("Written.")
    text = (ROOT / "docs" / "automation.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", text, re.S)
    script = tmp_path / "client.py"
    script.write_text(f"{program}\nassert run(*sys.argv[1:]) == 'Written.'\n")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(script), guarded.grpc_address, TOKEN, "Note this"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    assert out.decode() == "Let me write that down. Written."
    assert "workspace_write" in err.decode()
    sent = fake.last("Crew.Send")
    assert (sent.request.text, sent.request.label) == ("Note this", "nightly-report")
    decided = fake.last("Crew.Decide")
    assert (decided.request.approval_id, decided.request.approve) == ("a1", True)
    assert decided.principal is not None
    assert decided.principal.name == "script"

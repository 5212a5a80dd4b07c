"""Servers and channels as every service uses them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from crew.v1 import crew_pb2, crew_pb2_grpc, events_pb2, system_pb2, system_pb2_grpc
from google.protobuf import struct_pb2
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status

from services.common.errors import LimitReached
from services.common.rpc import DirectedChannel, RpcServer, Verifier, caller_of, connect, locale_from, trace
from services.common.rpc.tokens import issue_all
from services.common.start import StartError
from services.common.wording import load

LARGE = 15 * 1024 * 1024


class System(system_pb2_grpc.SystemServicer):
    """Answers, refuses, breaks and waits."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.cancelled = False
        self.deadline = 0.0
        self.trace: trace.Trace | None = None

    async def Health(
        self, request: system_pb2.HealthRequest, context: grpc.aio.ServicerContext
    ) -> system_pb2.HealthReply:
        self.deadline = context.time_remaining()
        self.trace = trace.current()
        return system_pb2.HealthReply(status=caller_of(), version=locale_from(context))

    async def Settings(self, request: object, context: grpc.aio.ServicerContext) -> system_pb2.SettingsReply:
        raise LimitReached("QUEUE_FULL", "error.internal", trace="t1", detail={"error": "full", "limit": 3})

    async def Stats(self, request: object, context: grpc.aio.ServicerContext) -> system_pb2.StatsReply:
        raise RuntimeError("the secret is hunter2")

    async def Connections(
        self, request: object, context: grpc.aio.ServicerContext
    ) -> system_pb2.ConnectionsReply:
        self.began.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return system_pb2.ConnectionsReply()


class Crew(crew_pb2_grpc.CrewServicer):
    """Streams by yielding, and refuses in the middle."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def Send(
        self, request: crew_pb2.SendRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[events_pb2.TurnEvent]:
        try:
            for seq in range(3):
                yield events_pb2.TurnEvent(seq=seq, text_delta=events_pb2.TextDelta(text=request.text))
            raise LimitReached("LATE", "error.internal", trace="t2")
        finally:
            self.closed.set()

    async def Watch(self, request: object, context: grpc.aio.ServicerContext) -> None:
        await context.write(events_pb2.TurnEvent(seq=7))


class Running:
    """A server with two callers' tokens."""

    def __init__(self, root: Path, server: RpcServer, system: System, crew: Crew) -> None:
        self.root = root
        self.server = server
        self.system = system
        self.crew = crew
        self.address = f"unix:{root}/o.sock"

    def channel(self, caller: str = "gateway") -> DirectedChannel:
        return connect(self.address, caller=caller, called="orchestrator", secrets_dir=self.root / caller)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    issue_all(tmp_path)
    server = RpcServer(
        f"unix:{tmp_path}/o.sock",
        catalogue=load("common"),
        verifier=Verifier.read(tmp_path / "orchestrator", "orchestrator", ["gateway", "cli"]),
        reflection=["crew.v1.System"],
    )
    system, crew = System(), Crew()
    system_pb2_grpc.add_SystemServicer_to_server(system, server.grpc)
    crew_pb2_grpc.add_CrewServicer_to_server(crew, server.grpc)
    await server.start()
    yield Running(tmp_path, server, system, crew)
    await server.stop(0)


@contextlib.asynccontextmanager
async def refused() -> AsyncIterator[list[grpc.aio.AioRpcError]]:
    caught: list[grpc.aio.AioRpcError] = []
    with pytest.raises(grpc.aio.AioRpcError) as info:
        yield caught
    caught.append(info.value)


async def test_the_caller_is_who_the_token_says(running: Running) -> None:
    for caller in ("gateway", "cli"):
        async with running.channel(caller) as channel:
            reply = await system_pb2_grpc.SystemStub(channel).Health(system_pb2.HealthRequest())
            assert reply.status == caller


@pytest.mark.parametrize("token", ["", "x" * 43, "wrong token"])
async def test_without_the_token_nothing_but_health_answers(running: Running, token: str) -> None:
    async with DirectedChannel(running.address, token=token) as channel:
        async with refused() as caught:
            await system_pb2_grpc.SystemStub(channel).Health(system_pb2.HealthRequest())
        assert caught[0].code() is grpc.StatusCode.UNAUTHENTICATED
        async with refused() as caught:
            async for _ in crew_pb2_grpc.CrewStub(channel).Send(crew_pb2.SendRequest()):
                pass
        assert caught[0].code() is grpc.StatusCode.UNAUTHENTICATED
        stub = health_pb2_grpc.HealthStub(channel)
        reply = await stub.Check(health_pb2.HealthCheckRequest())
        assert reply.status == health_pb2.HealthCheckResponse.SERVING
        async with refused() as caught:
            async for _ in reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(
                iter([reflection_pb2.ServerReflectionRequest(list_services="")])
            ):
                pass
        assert caught[0].code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.spec("GTW-279", "GTW-278")
@pytest.mark.parametrize(
    ("language", "word"),
    [("vi", "Nhật ký"), ("en", "The log"), ("fr", "The log"), ("vi-VN,vi;q=0.9", "Nhật ký")],
)
async def test_an_error_carries_reason_status_fields_and_a_sentence_in_the_caller_s_language(
    running: Running, language: str, word: str
) -> None:
    async with running.channel() as channel, refused() as caught:
        await system_pb2_grpc.SystemStub(channel).Settings(
            system_pb2.SettingsRequest(), metadata=(("accept-language", language),)
        )
    error = caught[0]
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert word in str(error.details())
    status = rpc_status.from_call(error)
    info, message, fields = (
        error_details_pb2.ErrorInfo(),
        error_details_pb2.LocalizedMessage(),
        struct_pb2.Struct(),
    )
    for packed, kind in zip(status.details, (info, message, fields), strict=True):
        assert packed.Unpack(kind)
    assert (info.reason, info.domain, info.metadata["http_status"]) == ("QUEUE_FULL", "crew.v1", "429")
    assert word in message.message
    assert dict(fields) == {"error": "full", "limit": 3.0}


@pytest.mark.spec("GTW-011")
async def test_a_bug_leaves_as_internal_without_its_text(running: Running) -> None:
    async with running.channel() as channel, refused() as caught:
        await system_pb2_grpc.SystemStub(channel).Stats(
            system_pb2.StatsRequest(), metadata=(("traceparent", f"00-{'c' * 32}-{'d' * 16}-01"),)
        )
    assert caught[0].code() is grpc.StatusCode.INTERNAL
    assert "hunter2" not in str(caught[0].details())
    assert "hunter2" not in str(rpc_status.from_call(caught[0]))


async def test_an_error_in_the_middle_of_a_stream_comes_after_what_was_sent(running: Running) -> None:
    seen = []
    async with running.channel() as channel, refused() as caught:
        async for event in crew_pb2_grpc.CrewStub(channel).Send(crew_pb2.SendRequest(text="x")):
            seen += [event.seq]
    assert seen == [0, 1, 2]
    assert caught[0].code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_servicer_may_write_to_its_context_as_well(running: Running) -> None:
    async with running.channel() as channel:
        seen = [event.seq async for event in crew_pb2_grpc.CrewStub(channel).Watch(crew_pb2.WatchRequest())]
    assert seen == [7]


async def test_a_caller_that_leaves_ends_the_stream_s_generator(running: Running) -> None:
    async with running.channel() as channel:
        call = crew_pb2_grpc.CrewStub(channel).Send(crew_pb2.SendRequest(text="x" * 100_000))
        await call.read()
        call.cancel()
        await asyncio.wait_for(running.crew.closed.wait(), 30)


@pytest.mark.spec("GTW-274")
async def test_a_unary_call_without_a_deadline_gets_thirty_seconds(running: Running) -> None:
    async with running.channel() as channel:
        stub = system_pb2_grpc.SystemStub(channel)
        await stub.Health(system_pb2.HealthRequest())
        assert 0 < running.system.deadline <= 31
        await stub.Health(system_pb2.HealthRequest(), timeout=300)
        # Deadlines travel rounded up.
        assert 31 < running.system.deadline <= 301


async def test_a_deadline_cancels_the_work(running: Running) -> None:
    async with running.channel() as channel, refused() as caught:
        await system_pb2_grpc.SystemStub(channel).Connections(system_pb2.ConnectionsRequest(), timeout=0.2)
    assert caught[0].code() is grpc.StatusCode.DEADLINE_EXCEEDED
    for _ in range(1500):
        if running.system.cancelled:
            break
        await asyncio.sleep(0.02)
    assert running.system.cancelled


async def test_the_trace_goes_on_in_a_span_of_its_own(running: Running) -> None:
    here = trace.Trace.begin()
    trace.enter(here)
    async with running.channel() as channel:
        await system_pb2_grpc.SystemStub(channel).Health(system_pb2.HealthRequest())
    there = running.system.trace
    assert there is not None
    assert there.trace_id == here.trace_id
    assert there.span_id != here.span_id


@pytest.mark.parametrize(
    "header", ["", "00-xyz", f"00-{'0' * 32}-{'1' * 16}-01", f"00-{'1' * 32}-{'0' * 16}-01", "x" * 9999]
)
def test_a_header_that_names_no_trace_begins_a_new_one(header: str) -> None:
    found = trace.Trace.from_header(header)
    assert len(found.trace_id) == 32
    assert found.trace_id.strip("0")
    assert found.trace_id not in header


async def test_fifteen_megabytes_pass_and_seventeen_do_not(running: Running) -> None:
    async with running.channel() as channel:
        stub = crew_pb2_grpc.CrewStub(channel)
        event = await stub.Send(crew_pb2.SendRequest(text="x" * LARGE)).read()
        assert len(event.text_delta.text) == LARGE
        async with refused() as caught:
            await stub.Stop(crew_pb2.StopRequest(conversation_id="x" * (17 * 1024 * 1024)))
    assert caught[0].code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_reflection_describes_what_was_asked_for(running: Running) -> None:
    async with running.channel() as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
        reply = await call.read()
    names = {service.name for service in reply.list_services_response.service}
    assert "crew.v1.System" in names
    assert "crew.v1.Crew" not in names


async def test_an_address_that_cannot_be_bound_is_one_sentence(tmp_path: Path) -> None:
    first = RpcServer("127.0.0.1:0", catalogue=load("common"), verifier=None)
    await first.start()
    try:
        taken = RpcServer(
            f"127.0.0.1:{first.port}", catalogue=load("common"), verifier=None, setting="--grpc-port"
        )
        with pytest.raises(StartError, match=f"Port {first.port} on 127.0.0.1 .* --grpc-port"):
            await taken.start()
    finally:
        await first.stop(0)
    for listen in (
        f"unix:{tmp_path}/none/o.sock",
        f"unix:{tmp_path}/{'x' * 120}",
        "192.0.2.1:1",
        "127.0.0.1:x",
    ):
        with pytest.raises(StartError, match="Cannot listen on"):
            await RpcServer(listen, catalogue=load("common"), verifier=None).start()


async def test_a_stop_lets_running_calls_end_and_takes_no_more(tmp_path: Path) -> None:
    server = RpcServer(f"unix:{tmp_path}/o.sock", catalogue=load("common"), verifier=None)
    system = System()
    system_pb2_grpc.add_SystemServicer_to_server(system, server.grpc)
    await server.start()
    assert (tmp_path / "o.sock").stat().st_mode & 0o777 == 0o600
    async with DirectedChannel(f"unix:{tmp_path}/o.sock") as channel:
        stub = system_pb2_grpc.SystemStub(channel)
        running = asyncio.ensure_future(stub.Connections(system_pb2.ConnectionsRequest()))
        await asyncio.wait_for(system.began.wait(), 30)
        await server.stop(0.1)
        with pytest.raises(grpc.aio.AioRpcError):
            await running
    assert system.cancelled


async def test_a_channel_finds_a_server_that_was_restarted(running: Running) -> None:
    async with running.channel() as channel:
        stub = system_pb2_grpc.SystemStub(channel)
        await stub.Health(system_pb2.HealthRequest())
        await running.server.stop(0)
        again = RpcServer(running.address, catalogue=load("common"), verifier=None)
        system_pb2_grpc.add_SystemServicer_to_server(System(), again.grpc)
        await again.start()
        try:
            await stub.Health(system_pb2.HealthRequest(), wait_for_ready=True)
        finally:
            await again.stop(0)

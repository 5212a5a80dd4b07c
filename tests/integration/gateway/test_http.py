"""The HTTP API of a running gateway."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import httpx
import pytest
from crew.v1 import agents_pb2, approvals_pb2, conversations_pb2

from tests.fixtures.gateway import Gateway, free_port, gateway_before, gateway_with_fake


@pytest.mark.spec("GTW-002", "GTW-003", "GTW-038")
async def test_addresses_under_api_are_api_and_answer_json(gateway: Gateway) -> None:
    for path in ("/api/nope", "/api/", "/api/conversations/%2e%2e%2f", "/api/conversations/c1/turn/x"):
        answer = await gateway.http.get(path)
        assert answer.status_code == 404
        assert isinstance(answer.json()["detail"], str)
    wrong = await gateway.http.put("/api/conversations", json={})
    assert wrong.status_code == 405
    assert wrong.headers["allow"] == "GET, POST"
    assert "GET, POST" in wrong.json()["detail"]
    assert (await gateway.http.get("/api/auth/login")).status_code == 405


@pytest.mark.spec("GTW-010")
async def test_every_answer_carries_the_security_headers(gateway: Gateway) -> None:
    answers = [
        await gateway.http.get("/"),
        await gateway.http.get("/api/agents"),
        await gateway.http.get("/api/nope"),
        await gateway.http.get("/api/settings"),
        await gateway.http.put("/api/agents"),
        await gateway.http.get("/api/agents", headers={"Host": "evil.example"}),
        await gateway.http.get("/api/agents", headers={"Sec-Fetch-Site": "cross-site"}),
        await gateway.http.post("/api/inbound", content=b"{"),
        await gateway.http.get("/api/conversations/c1/turn"),
    ]
    assert sorted({answer.status_code for answer in answers}) == [200, 204, 400, 403, 404, 405, 500]
    for answer in answers:
        assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.spec("GTW-010", "GTW-011")
async def test_a_fault_nobody_handled_is_500_without_its_text(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    from services.gateway.http import endpoint

    def broken(*_: object) -> None:
        raise RuntimeError("inner secret")

    monkeypatch.setattr(endpoint, "build", broken)
    answer = await gateway.http.get("/api/agents", headers={"Accept-Language": "vi"})
    assert answer.status_code == 500
    assert "inner secret" not in answer.text
    assert "Traceback" not in answer.text
    assert "hệ thống" in answer.json()["detail"]
    assert "frame-ancestors 'self'" in answer.headers["content-security-policy"]


@pytest.mark.spec("GTW-011")
async def test_a_bug_of_the_orchestrator_is_500_without_its_text(gateway: Gateway) -> None:
    answer = await gateway.http.get("/api/settings")
    assert answer.status_code == 500
    assert "secret detail" not in answer.text
    assert answer.json()["detail"].startswith("Internal fault")


@pytest.mark.spec("GTW-008")
async def test_long_answers_are_compressed_and_short_ones_are_not(gateway: Gateway) -> None:
    async with gateway.http.stream("GET", "/api/agents", headers={"Accept-Encoding": "gzip"}) as short:
        assert "content-encoding" not in short.headers
    gateway.fake.agents = [agents_pb2.Agent(id=f"agent-{n}", description="x" * 100) for n in range(50)]
    async with gateway.http.stream("GET", "/api/agents", headers={"Accept-Encoding": "gzip"}) as long:
        assert long.headers["content-encoding"] == "gzip"
        raw = b"".join([chunk async for chunk in long.aiter_raw()])
    assert len(json.loads(gzip.decompress(raw))) == 50
    plain = await gateway.http.get("/api/agents", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers


@pytest.mark.spec("GTW-053", "GTW-037")
async def test_statuses_bodies_and_the_shown_field(gateway: Gateway) -> None:
    created = await gateway.http.post("/api/conversations", json={"agent_id": "coder"})
    assert created.status_code == 201
    assert created.json()["agent_id"] == "coder"
    assert created.json()["forked_from"] is None
    gateway.fake.conversations["c1"] = conversations_pb2.Conversation(id="c1")
    listed = await gateway.http.get("/api/conversations?limit=5")
    assert [one["id"] for one in listed.json()] == ["c1"]
    assert gateway.fake.last("Conversations.List").request.limit == 5
    deleted = await gateway.http.delete("/api/conversations/c1")
    assert deleted.status_code == 204
    assert deleted.content == b""


async def test_a_patch_says_which_keys_it_named_null_included(gateway: Gateway) -> None:
    gateway.fake.conversations["c1"] = conversations_pb2.Conversation(id="c1")
    body = {"title": None, "auto_approve": [], "cost_cap_usd": 0}
    assert (await gateway.http.patch("/api/conversations/c1", json=body)).status_code == 200
    seen = gateway.fake.last("Conversations.Update").request
    assert list(seen.update_mask.paths) == ["title", "auto_approve", "cost_cap_usd"]
    assert not seen.HasField("title")
    assert seen.HasField("cost_cap_usd")
    unknown = await gateway.http.patch("/api/conversations/c1", json={"titel": "x"})
    assert unknown.status_code == 422
    assert "titel" in unknown.json()["detail"]


async def test_the_path_wins_over_the_body(gateway: Gateway) -> None:
    gateway.fake.conversations["c1"] = conversations_pb2.Conversation(id="c1")
    await gateway.http.patch("/api/conversations/c1", json={"id": "other", "title": "x"})
    seen = gateway.fake.last("Conversations.Update").request
    assert seen.id == "c1"
    assert list(seen.update_mask.paths) == ["title"]


@pytest.mark.spec("GTW-039", "GTW-041", "GTW-038")
@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("vi", "Không có cuộc trò chuyện"),
        ("en-GB,vi;q=0.5", "There is no conversation"),
        ("fr", "There is no"),
    ],
)
async def test_refusals_speak_the_readers_language(gateway: Gateway, language: str, words: str) -> None:
    answer = await gateway.http.get("/api/conversations/x%2Fy", headers={"Accept-Language": language})
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith(words)
    assert "x/y" in answer.json()["detail"]
    own = await gateway.http.get("/api/nope", headers={"Accept-Language": language})
    assert ("API không có" in own.text) == (language == "vi")


@pytest.mark.spec("GTW-039")
async def test_without_a_language_the_configured_one_is_used(run_folder: Path) -> None:
    async with gateway_with_fake(run_folder, language="vi") as gateway:
        answer = await gateway.http.get("/api/conversations/none")
        assert answer.json()["detail"].startswith("Không có")
        assert (await gateway.http.get("/api/nope")).json()["detail"].startswith("API không")


@pytest.mark.spec("GTW-040")
async def test_error_statuses_come_from_the_orchestrator(gateway: Gateway) -> None:
    gateway.fake.conversations["c1"] = conversations_pb2.Conversation(id="c1")
    sends = "/api/conversations/c1/messages"
    waiting = await gateway.http.post(sends, json={"text": "waiting"})
    assert (waiting.status_code, waiting.headers["content-type"]) == (409, "application/json")
    assert (await gateway.http.post(sends, json={"text": "full"})).status_code == 429
    too_long = await gateway.http.post(sends, json={"text": "é" * 200_001})
    assert too_long.status_code == 413
    assert "200000" in too_long.json()["detail"]
    assert (
        await gateway.http.post("/api/conversations/none/messages", json={"text": "x"})
    ).status_code == 404


@pytest.mark.spec("GTW-040")
async def test_bad_bodies(gateway: Gateway) -> None:
    async def post(body: bytes) -> httpx.Response:
        return await gateway.http.post("/api/inbound", content=body)

    assert (await post(b"{")).status_code == 400
    assert (await post(b'{"text": NaN}')).status_code == 400
    assert (await post(b'{"text": "a", "text": "b"}')).status_code == 400
    assert (await post(b"[" * 300_000)).status_code == 400
    assert (await post(b"\xff")).status_code == 400
    assert (await post(b"[]")).status_code == 422
    assert (await post(b'{"request_id": "r"}')).status_code == 422
    assert (await post(b'{"text": 5}')).status_code == 422
    assert not [seen for seen in gateway.fake.seen if seen.method == "Inbound"]
    assert (await gateway.http.get("/api/conversations?limit=many")).status_code == 422
    assert (await gateway.http.get("/api/conversations?unknown=1")).status_code == 200
    many = "&".join(f"a{n}=1" for n in range(200))
    assert (await gateway.http.get(f"/api/conversations?{many}")).status_code == 422
    assert (await gateway.http.get("/api/conversations?agent_id=%ff")).status_code == 422


async def test_the_longest_message_fits_even_when_every_character_is_escaped(gateway: Gateway) -> None:
    text = json.dumps("🦊" * 200_000)
    answer = await gateway.http.post("/api/inbound", content=f'{{"text": {text}}}'.encode())
    assert answer.status_code == 200
    assert gateway.fake.last("Inbound").request.text == "🦊" * 200_000


async def test_a_body_over_the_limit_is_not_read(gateway: Gateway) -> None:
    declared = await gateway.http.post("/api/inbound", content=b" " * (5 * 1024 * 1024))
    assert declared.status_code == 413
    assert "4194304" in declared.json()["detail"]
    assert not [seen for seen in gateway.fake.seen if seen.method == "Inbound"]


async def test_a_body_without_end_is_answered_and_cut_off(gateway: Gateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(b"POST /api/inbound HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"

    async def write_for_ever() -> None:
        while True:
            writer.write(chunk)
            await writer.drain()

    with pytest.raises(ConnectionError):
        await write_for_ever()
    writer.close()
    assert (await gateway.http.get("/api/agents")).status_code == 200
    assert not [seen for seen in gateway.fake.seen if seen.method == "Inbound"]
    del reader


async def raw(gateway: Gateway, data: bytes) -> bytes:
    """Send bytes as they are; returns what comes until the connection ends, or is cut off."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    received = bytearray()
    try:
        writer.write(data)
        while chunk := await asyncio.wait_for(reader.read(65_536), 30):
            received += chunk
    except ConnectionError:
        # What we sent after the refusal was not read any more.
        pass
    finally:
        writer.close()
    return bytes(received)


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    ],
)
@pytest.mark.spec("GTW-010")
async def test_what_is_no_request_is_refused(gateway: Gateway, data: bytes) -> None:
    answer = await raw(gateway, data)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"frame-ancestors 'self'" in answer


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1_000_000,
        b"GET /" + b"a" * 1_000_000,
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(100_000)),
        b"GET / HTTP/1.1\r\n" + b"X" * 1_000_000,
    ],
)
async def test_a_head_without_end_is_cut_off(gateway: Gateway, data: bytes) -> None:
    answer = await raw(gateway, data)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
    assert (await gateway.http.get("/api/agents")).status_code == 200


async def test_a_request_of_the_first_protocol_without_a_host_is_refused(gateway: Gateway) -> None:
    assert (await raw(gateway, b"GET / HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 403 ")


@pytest.mark.spec("GTW-005", "GTW-044")
async def test_health_and_every_route_when_the_orchestrator_is_away(run_folder: Path) -> None:
    async with gateway_with_fake(run_folder) as gateway:
        healthy = await gateway.http.get("/api/health")
        assert healthy.status_code == 200
        assert healthy.json()["status"] == "ok"
        assert healthy.json()["version"] == "0.1.0"
        fake = gateway.fake
    async with gateway_before(f"unix:{run_folder}/o.sock", run_folder, fake) as gateway:
        health = await gateway.http.get("/api/health")
        assert health.status_code == 503
        assert health.json()["service"] == "orchestrator"
        assert health.json()["status"] == "unavailable"
        for path in ("/api/agents", "/api/activity/stream", "/api/conversations/c1/turn"):
            answer = await gateway.http.get(path, headers={"Accept-Language": "vi"})
            assert answer.status_code == 503
            assert "bộ điều phối" in answer.json()["detail"]
            assert str(run_folder) not in answer.text
        assert (await gateway.http.get("/api/nope")).status_code == 404


@pytest.mark.spec("GTW-005")
async def test_the_gateway_finds_an_orchestrator_that_comes_back(run_folder: Path) -> None:
    from tests.fixtures.fake_orchestrator import FakeOrchestrator, running

    fake = FakeOrchestrator()
    async with running(fake, run_folder) as address:
        pass
    async with gateway_before(address, run_folder, fake) as gateway:
        assert (await gateway.http.get("/api/agents")).status_code == 503
        async with running(fake, run_folder), asyncio.timeout(30):
            while (await gateway.http.get("/api/agents")).status_code != 200:
                await asyncio.sleep(0.05)


async def test_raw_json_reaches_the_reader_digit_by_digit(gateway: Gateway) -> None:
    waiting = approvals_pb2.Approval(arguments='{"n": 1.10, "big": 9007199254740993, "huge": 1e400}')
    gateway.fake.conversations["c1"] = conversations_pb2.Conversation(id="c1", pending_approval=waiting)
    answer = await gateway.http.get("/api/conversations/c1")
    assert b'"arguments":{"n": 1.10, "big": 9007199254740993, "huge": 1e400}' in answer.content


async def test_head_is_get_without_its_body(gateway: Gateway) -> None:
    answer = await gateway.http.head("/api/agents")
    assert answer.status_code == 200
    assert answer.content == b""
    assert (await gateway.http.head("/api/activity/stream")).status_code == 405


async def test_the_description_of_the_api_is_served(gateway: Gateway) -> None:
    document = (await gateway.http.get("/api/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    assert "/api/conversations/{id}" in document["paths"]


@pytest.mark.spec("GTW-002", "GTW-009")
async def test_pages(run_folder: Path, tmp_path: Path) -> None:
    import services.gateway.app as app

    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>crew</title>")
    (tmp_path / "assets" / "main-1a2b.js").write_text("console.log(1)")
    (tmp_path / "favicon.svg").write_text("<svg/>")
    (tmp_path.parent / "outside.txt").write_text("outside")
    (tmp_path / "link.txt").symlink_to(tmp_path.parent / "outside.txt")
    built = app.build

    def build(*args: object, **kwargs: object) -> object:
        return built(*args, **kwargs, static=tmp_path)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "build", build)
        async with gateway_with_fake(run_folder) as gateway:
            http = gateway.http
            for path in ("/", "/index.html", "/manage/tools", "/nope", "/%2e%2e/%2e%2e/etc/passwd", "/.git"):
                page = await http.get(path)
                assert (page.status_code, page.headers["cache-control"]) == (200, "no-cache")
                assert "<title>crew</title>" in page.text
            again = await http.get("/", headers={"If-None-Match": page.headers["etag"]})
            assert again.status_code == 304
            asset = await http.get("/assets/main-1a2b.js")
            assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert "javascript" in asset.headers["content-type"]
            missing = await http.get("/assets/main-0000.js")
            assert (missing.status_code, missing.headers["cache-control"]) == (404, "no-store")
            assert (await http.get("/favicon.svg")).headers["cache-control"] == "no-cache"
            assert "outside" not in (await http.get("/link.txt")).text
            assert (await http.post("/")).status_code == 405
            assert (await http.get("/", headers={"Sec-Fetch-Site": "cross-site"})).status_code == 200


async def test_a_port_in_use_stops_the_start_with_a_sentence(gateway: Gateway, run_folder: Path) -> None:
    from services.common.settings import GatewaySettings
    from services.common.start import StartError
    from services.gateway.app import serve

    for taken in ({"port": gateway.port}, {"grpc_port": gateway.grpc_port}):
        settings = GatewaySettings(
            **{
                "orchestrator_address": f"unix:{run_folder}/o.sock",
                "secrets_dir": run_folder / "gateway",
                "port": free_port(),
                "grpc_port": free_port(),
                **taken,
            }
        )
        with pytest.raises(StartError) as caught:
            await serve(settings, stop=asyncio.Event())
        number = str(next(iter(taken.values())))
        assert number in caught.value.text("en")
        assert number in caught.value.text("vi")

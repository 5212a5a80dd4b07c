"""Sessions, tokens and scopes at the edge."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import httpx
import pytest
from crew.v1 import conversations_pb2

from services.common.settings import GatewaySettings
from services.common.start import StartError
from tests.fixtures.fake_orchestrator import Turn
from tests.fixtures.gateway import Gateway, gateway_with_fake

TOKEN = "crew_" + "t" * 43


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def log_in(gateway: Gateway, **headers: str) -> httpx.Response:
    return await gateway.http.post("/api/auth/login", json={"password": "correct horse"}, headers=headers)


@pytest.mark.spec("GTW-026", "GTW-027")
async def test_what_is_open_without_a_login_and_what_is_not(guarded: Gateway) -> None:
    health = await guarded.http.get("/api/health")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    session = await guarded.http.get("/api/auth/session")
    assert session.json() == {
        "mode": "owner",
        "authenticated": False,
        "kind": None,
        "scopes": [],
        "expires_at": None,
    }
    document = (await guarded.http.get("/api/openapi.json")).json()
    open_paths = {
        "/api/health",
        "/api/auth/login",
        "/api/auth/setup",
        "/api/auth/logout",
        "/api/auth/session",
    }
    for path, operations in document["paths"].items():
        for verb in operations:
            if path in open_paths:
                continue
            address = path.replace("{", "").replace("}", "")
            answer = await guarded.http.request(verb, address, json=None if verb in ("get", "delete") else {})
            assert answer.status_code == 401, (verb, path)
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["detail"]
    assert {seen.method for seen in guarded.fake.seen} <= {"Health", "OpenSetUp"}


@pytest.mark.spec("GTW-022", "GTW-012")
async def test_the_fence_comes_before_the_login(guarded: Gateway) -> None:
    evil = await guarded.http.get("/api/agents", headers={"Host": "evil.example", **bearer()})
    assert evil.status_code == 403
    assert guarded.fake.verified == 0
    assert (await guarded.http.get("/api/agents")).status_code == 401


@pytest.mark.spec("GTW-028")
async def test_a_login_sets_a_cookie_that_opens_everything_and_ends(guarded: Gateway) -> None:
    answer = await log_in(guarded)
    assert answer.status_code == 204
    assert answer.content == b""
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert (await guarded.http.get("/api/agents")).status_code == 200
    principal = guarded.fake.last("Agents.List").principal
    assert principal is not None
    assert (principal.kind, principal.address) == ("session", "127.0.0.1")
    session = await guarded.http.get("/api/auth/session")
    assert session.json()["kind"] == "session"
    assert "owner" in session.json()["scopes"]
    assert session.json()["expires_at"]
    assert "Max-Age=2592000" in session.headers["set-cookie"]
    old = dict(guarded.http.cookies)
    out = await guarded.http.post("/api/auth/logout")
    assert out.status_code == 204
    assert "Max-Age=0" in out.headers["set-cookie"]
    guarded.http.cookies.clear()
    guarded.http.cookies.update(old)
    assert (await guarded.http.get("/api/agents")).status_code == 401


@pytest.mark.spec("GTW-028", "GTW-021")
async def test_the_cookie_is_secure_behind_a_tls_proxy_that_is_listed(run_folder: Path) -> None:
    async with gateway_with_fake(run_folder, auth="owner", trusted_proxies=("127.0.0.1/32",)) as gateway:
        headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.5"}
        answer = await log_in(gateway, **headers)
        assert answer.headers["set-cookie"].endswith("; Secure")
        assert gateway.fake.last("Login").request.address == "203.0.113.5"


@pytest.mark.spec("GTW-029", "GTW-035")
async def test_wrong_logins_are_refused_and_then_held_back(guarded: Gateway) -> None:
    for _ in range(5):
        answer = await guarded.http.post("/api/auth/login", json={"password": "s3cret-guess"})
        assert answer.status_code == 401
        assert "s3cret-guess" not in answer.text
        assert "set-cookie" not in answer.headers
    held = await log_in(guarded)
    assert held.status_code == 429
    assert held.headers["retry-after"] == "60"


async def test_where_the_caller_is_cannot_be_claimed(guarded: Gateway) -> None:
    await guarded.http.post("/api/auth/login", json={"password": "x", "address": "6.6.6.6"})
    assert guarded.fake.last("Login").request.address == "127.0.0.1"


@pytest.mark.parametrize("body", [b"", b"{}", b'{"password": 5}', b'{"session": "x"}', b"[", b"x" * 20_000])
async def test_bad_logins_are_refused_within_limits(guarded: Gateway, body: bytes) -> None:
    answer = await guarded.http.post("/api/auth/login", content=body)
    assert answer.status_code in (400, 401, 413, 422)


@pytest.mark.spec("GTW-025")
async def test_the_first_password_is_set_with_the_one_time_token(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.fixtures.fake_orchestrator import FakeOrchestrator, running
    from tests.fixtures.gateway import gateway_before

    fake = FakeOrchestrator()
    fake.setup_token = "one-time-" + "z" * 34
    async with (
        running(fake, run_folder) as address,
        gateway_before(address, run_folder, fake, auth="owner") as gateway,
    ):
        printed = ""
        async with asyncio.timeout(30):
            while "#/setup/" not in printed:
                printed += capsys.readouterr().err
                await asyncio.sleep(0.02)
        assert f"http://127.0.0.1:{gateway.port}/#/setup/{fake.setup_token}" in printed
        body = {"setup_token": fake.setup_token, "password": "a good long one"}
        wrong = await gateway.http.post("/api/auth/setup", json={**body, "setup_token": "guess"})
        assert wrong.status_code == 401
        done = await gateway.http.post("/api/auth/setup", json=body)
        assert done.status_code == 204
        assert "crew_session=" in done.headers["set-cookie"]
        assert (await gateway.http.get("/api/agents")).status_code == 200
        assert (await gateway.http.post("/api/auth/setup", json=body)).status_code == 401


@pytest.mark.spec("GTW-027", "GTW-030", "GTW-031", "GTW-032", "GTW-033", "GTW-036")
async def test_a_token_does_what_its_scopes_say(guarded: Gateway) -> None:
    fake = guarded.fake
    fake.conversations["c1"] = conversations_pb2.Conversation(id="c1")
    fake.turns["c1"] = Turn()
    await fake.turns["c1"].end()
    fake.tokens[TOKEN] = ["read"]
    assert (await guarded.http.get("/api/agents", headers=bearer())).status_code == 200
    principal = fake.last("Agents.List").principal
    assert principal is not None
    assert (principal.kind, principal.name, list(principal.scopes)) == ("token", "script", ["read"])
    refused = await guarded.http.post("/api/inbound", json={"text": "x"}, headers=bearer())
    assert refused.status_code == 403
    assert "chat" in refused.json()["detail"]
    for decide in ("/api/approvals/a1", "/api/conversations/c1/approvals/a1"):
        answer = await guarded.http.post(decide, json={"approve": True}, headers=bearer())
        assert (answer.status_code, "approve" in answer.json()["detail"]) == (403, True)
    all_but_owner = "crew_" + "u" * 43
    fake.tokens[all_but_owner] = ["read", "chat", "approve", "files", "manage"]
    owner_only = [("GET", "tokens"), ("POST", "tokens"), ("DELETE", "tokens/t1"), ("DELETE", "sessions")]
    for verb, what in owner_only:
        answer = await guarded.http.request(
            verb,
            f"/api/auth/{what}",
            json={"name": "x", "scopes": ["read"]} if verb == "POST" else None,
            headers=bearer(all_but_owner),
        )
        assert answer.status_code == 403
    async with asyncio.timeout(30):
        while len(fake.denied) < 7:
            await asyncio.sleep(0.02)
    reported = {(report.method, report.scope) for report in fake.denied}
    assert ("/crew.v1.Turns/Inbound", "chat") in reported
    assert ("/crew.v1.Auth/CreateToken", "owner") in reported
    assert all(report.principal.address == "127.0.0.1" for report in fake.denied)
    assert not {seen.method for seen in fake.seen} & {"Inbound", "Decide", "CreateToken", "DeleteToken"}


@pytest.mark.spec("GTW-027")
@pytest.mark.parametrize(
    "headers",
    [
        bearer("crew_wrong"),
        {"Authorization": "Bearer"},
        {"Authorization": "Basic b3duZXI6eA=="},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer " + "x" * 50_000},
        {"Cookie": "crew_session=wrong"},
        {"Cookie": "crew_session="},
        {"Cookie": f"crew_session={TOKEN}"},
        {"Cookie": "crew_session=a; crew_session=b"},
        {"X-Api-Key": TOKEN},
        {"crew-principal-bin": "AAAA"},
    ],
)
async def test_other_credentials_are_none(guarded: Gateway, headers: dict[str, str]) -> None:
    guarded.fake.tokens[TOKEN] = ["read"]
    answer = await guarded.http.get("/api/agents", headers=headers)
    assert answer.status_code == 401
    assert TOKEN not in answer.text


async def test_a_token_in_the_address_is_no_credential(guarded: Gateway) -> None:
    guarded.fake.tokens[TOKEN] = ["read"]
    assert (await guarded.http.get(f"/api/agents?token={TOKEN}&authorization={TOKEN}")).status_code == 401


@pytest.mark.spec("GTW-030", "GTW-043", "GTW-035")
async def test_a_token_is_shown_once_and_works_until_it_is_deleted(guarded: Gateway) -> None:
    await log_in(guarded)
    made = await guarded.http.post("/api/auth/tokens", json={"name": "script", "scopes": ["read", "chat"]})
    assert made.status_code == 201
    token = made.json()["token"]
    plain = httpx.AsyncClient(base_url=guarded.http.base_url, headers=bearer(token), timeout=20)
    async with plain:
        assert (await plain.get("/api/agents")).status_code == 200
        for path in ("/api/auth/tokens", "/api/auth/session", "/api/agents", "/api/health"):
            assert token not in (await guarded.http.get(path)).text
        assert (await guarded.http.delete("/api/auth/tokens/t1")).status_code == 204
        assert (await plain.get("/api/agents")).status_code == 401


@pytest.mark.spec("GTW-030")
@pytest.mark.parametrize("here", [True, False])
async def test_streams_of_an_ended_credential_close_within_five_seconds(guarded: Gateway, here: bool) -> None:
    guarded.fake.tokens[TOKEN] = ["read"]
    async with guarded.http.stream("GET", "/api/activity/stream", headers=bearer()) as answer:
        lines = answer.aiter_lines()
        await anext(lines)
        if here:
            await log_in(guarded)
            assert (await guarded.http.delete("/api/auth/tokens/t1")).status_code == 204
        else:
            # Deleted through another gateway: only asking tells.
            guarded.fake.tokens.clear()
        ended_at = time.monotonic()
        async for _ in lines:
            pass
    # The promise is five seconds; the rest is for a busy machine.
    assert time.monotonic() - ended_at < 15
    async with asyncio.timeout(30):
        while guarded.fake.watchers:
            await asyncio.sleep(0.02)


async def test_an_answer_about_a_credential_is_kept_for_a_moment_only(guarded: Gateway) -> None:
    guarded.fake.tokens[TOKEN] = ["read"]
    await asyncio.gather(*(guarded.http.get("/api/agents", headers=bearer()) for _ in range(30)))
    assert guarded.fake.verified < 5
    guarded.fake.tokens.clear()
    async with asyncio.timeout(30):
        while (await guarded.http.get("/api/agents", headers=bearer())).status_code != 401:
            await asyncio.sleep(0.1)


@pytest.mark.spec("GTW-034", "GTW-017")
async def test_a_cookie_does_not_help_another_page(guarded: Gateway) -> None:
    await log_in(guarded)
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        answer = await guarded.http.post("/api/inbound", json={"text": "x"}, headers=headers)
        assert answer.status_code == 403
    ours = {"Origin": f"http://127.0.0.1:{guarded.port}", "Sec-Fetch-Site": "same-origin"}
    assert (await guarded.http.post("/api/inbound", json={"text": "x"}, headers=ours)).status_code == 200


@pytest.mark.spec("GTW-023")
async def test_on_a_loopback_address_no_login_is_asked(gateway: Gateway) -> None:
    session = (await gateway.http.get("/api/auth/session")).json()
    assert (session["mode"], session["authenticated"], session["kind"]) == ("none", True, "local")
    assert (await gateway.http.get("/api/health")).json()["services"][0]["name"] == "tools"
    assert (await gateway.http.post("/api/auth/login", json={"password": "x"})).status_code == 409
    made = await gateway.http.post("/api/auth/tokens", json={"name": "x", "scopes": ["chat"]})
    assert made.status_code == 201
    principal = gateway.fake.last("CreateToken").principal
    assert principal is not None
    assert principal.kind == "local"
    narrowed = await gateway.http.get("/api/agents", headers=bearer(made.json()["token"]))
    assert narrowed.status_code == 403
    assert (await gateway.http.get("/api/agents", headers=bearer("crew_wrong"))).status_code == 401
    assert (await gateway.http.get("/api/agents", headers={"Authorization": "Basic eDp5"})).status_code == 200


@pytest.mark.spec("GTW-023", "GTW-024")
def test_when_a_login_is_asked() -> None:
    def settings(**environ: str) -> GatewaySettings:
        base = {"MY_AGENT_ORCHESTRATOR_ADDRESS": "x:1", "MY_AGENT_SECRETS_DIR": "/s"}
        return GatewaySettings.from_environment({**base, **{f"MY_AGENT_{k}": v for k, v in environ.items()}})

    assert not settings().login_required
    assert not settings(HOST="::1").login_required
    assert settings(HOST="0.0.0.0").login_required
    assert settings(HOST="192.168.1.5").login_required
    assert settings(AUTH="owner").login_required
    with pytest.raises(StartError):
        settings(HOST="0.0.0.0", AUTH="none")
    assert not settings(HOST="0.0.0.0", AUTH="none", AUTH_INSECURE="1").login_required


@pytest.mark.spec("GTW-024")
async def test_an_open_gateway_warns_at_every_start(run_folder: Path) -> None:
    import structlog.testing

    with structlog.testing.capture_logs() as lines:
        async with gateway_with_fake(
            run_folder, host="0.0.0.0", auth="none", auth_insecure=True, grpc_insecure=True
        ):
            pass
    assert any("WARNING" in line["event"] for line in lines)

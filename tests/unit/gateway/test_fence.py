"""The fence against names and origins that are not ours."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
import structlog.testing

from services.common.wording import load
from services.gateway.fence import Fence
from services.gateway.peer import peer_of

Headers = list[tuple[bytes, bytes]]


async def behind(scope: Any, receive: Any, send: Any) -> None:
    peer = peer_of(scope)
    body = f"{peer.address} {peer.host} {peer.secure}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def fence(*allowed: str, proxies: tuple[str, ...] = ()) -> Fence:
    return Fence(
        behind,
        allowed_hosts=allowed,
        trusted_proxies=[ipaddress.ip_network(proxy) for proxy in proxies],
        catalogue=load("common", "gateway"),
        language="en",
    )


async def ask(
    app: Fence, headers: Headers, path: str = "/api/agents", client: str = "10.0.0.9"
) -> tuple[int, str]:
    """One request with exactly these headers."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "scheme": "http",
        "headers": headers,
        "client": (client, 1234),
    }
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(m.get("body", b"") for m in sent[1:]).decode()


def host(value: str) -> Headers:
    return [(b"host", value.encode("latin-1"))]


@pytest.mark.spec("GTW-013", "GTW-015")
@pytest.mark.parametrize(
    "value",
    [
        "127.0.0.1",
        "127.0.0.1:8765",
        "192.168.1.20:8765",
        "localhost",
        "LOCALHOST:1",
        "[::1]",
        "[::1]:8765",
        "[fe80::1]:80",
        "crew.home",
        "Crew.Home:8443",
    ],
)
async def test_addresses_localhost_and_listed_names_pass(value: str) -> None:
    assert (await ask(fence("crew.home"), host(value)))[0] == 200


@pytest.mark.spec("GTW-013", "GTW-015")
@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "evil.example",
        "evil.example:8765",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example#localhost",
        "localhost@evil.example",
        "evil.example:80@127.0.0.1",
        "127.0.0.1:80:80",
        "127.0.0.1:",
        "127.0.0.1:99999",
        "127.0.0.1:-1",
        "127.0.0.1 ",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "localhost.",
        "127.0.0.1\t",
        "::1",
        "[::1",
        "::1]:80",
        "[::1%25lo]",
        "[fe80::1%eth0]:80",
        "[127.0.0.1]",
        "[v1.x]",
        "[]",
        "crew.home.",
        "xcrew.home",
        "crew.home.evil.example",
        "crew_home",
        "crew.home, evil.example",
        "crew.home/evil",
        "\xb9\xb227.0.0.1",
        "lo\xe7alhost",
        "127。0。0。1".encode().decode("latin-1"),
        "*",
    ],
)
async def test_other_spellings_are_refused(value: str) -> None:
    assert (await ask(fence("crew.home"), host(value)))[0] == 403


@pytest.mark.spec("GTW-015")
@pytest.mark.parametrize(
    "headers", [[], [(b"host", b"localhost"), (b"host", b"evil.example")], [(b"host", b"localhost")] * 2]
)
async def test_a_missing_or_doubled_host_is_refused(headers: Headers) -> None:
    assert (await ask(fence(), headers))[0] == 403


@pytest.mark.spec("GTW-012", "GTW-016")
async def test_the_page_names_host_and_setting_and_escapes_the_host_in_every_language() -> None:
    for path in ("/", "/api/agents", "/nope"):
        status, body = await ask(fence(), host("evil.example"), path)
        assert status == 403
        assert "evil.example" in body
        assert "MY_AGENT_ALLOWED_HOSTS" in body
    vietnamese = [*host("evil.example"), (b"accept-language", b"vi-VN,vi;q=0.9")]
    assert "không nằm trong" in (await ask(fence(), vietnamese))[1]
    _, page = await ask(fence(), [*host("localhost"), (b"origin", b"http://<script>alert(1)</script>")], "/")
    assert "<script>" not in page


@pytest.mark.spec("GTW-016")
async def test_each_refused_host_is_logged_once() -> None:
    app = fence()
    with structlog.testing.capture_logs() as lines:
        for value in ("evil.example", "EVIL.example:80", "evil.example", "other.example"):
            await ask(app, host(value))
    assert [line["host"] for line in lines] == ["evil.example", "other.example"]


async def test_a_flood_of_names_fills_neither_log_nor_memory() -> None:
    app = fence()
    with structlog.testing.capture_logs() as lines:
        for number in range(1_200):
            await ask(app, host(f"n{number}.example"))
    assert len(lines) == 1_000


@pytest.mark.spec("GTW-014")
def test_allowed_names_are_read_from_the_environment_without_case_and_port() -> None:
    from services.common.settings import GatewaySettings

    settings = GatewaySettings.from_environment(
        {
            "MY_AGENT_ORCHESTRATOR_ADDRESS": "x:1",
            "MY_AGENT_SECRETS_DIR": "/s",
            "MY_AGENT_ALLOWED_HOSTS": " Crew.Home:8443 , other ",
        }
    )
    assert settings.allowed_hosts == ("crew.home", "other")


@pytest.mark.spec("GTW-017")
@pytest.mark.parametrize(
    ("called", "origin", "passes"),
    [
        ("127.0.0.1:8765", "http://127.0.0.1:8765", True),
        ("127.0.0.1:8765", "https://127.0.0.1:8765", True),
        ("127.0.0.1:8765", "HTTP://127.0.0.1:8765", True),
        ("crew.home", "https://crew.home", True),
        ("crew.home:443", "https://crew.home", True),
        ("crew.home", "http://crew.home:80", True),
        ("Crew.Home", "https://crew.home", True),
        ("[::1]:8765", "http://[::1]:8765", True),
        ("127.0.0.1:8765", "http://127.0.0.1:3000", False),
        ("127.0.0.1:8765", "http://127.0.0.1", False),
        ("127.0.0.1:8765", "http://localhost:8765", False),
        ("localhost:8765", "http://127.0.0.1:8765", False),
        ("127.0.0.1:8765", "null", False),
        ("127.0.0.1:8765", "", False),
        ("127.0.0.1:8765", "127.0.0.1:8765", False),
        ("127.0.0.1:8765", "http://127.0.0.1:8765/", False),
        ("127.0.0.1:8765", "http://127.0.0.1:8765.evil.example", False),
        ("127.0.0.1:8765", "http://evil.example#127.0.0.1:8765", False),
        ("127.0.0.1:8765", "http://evil@127.0.0.1:8765", False),
        ("127.0.0.1:8765", "file://127.0.0.1:8765", False),
        ("127.0.0.1:8765", "chrome-extension://127.0.0.1:8765", False),
        ("127.0.0.1:8765", "http://127.0.0.1:8765 http://evil.example", False),
        ("crew.home", "https://crew.home:80", False),
        ("crew.home", "http://crew.home:443", False),
        ("crew.home", "https://evil.example", False),
    ],
)
async def test_origins(called: str, origin: str, passes: bool) -> None:
    headers = [*host(called), (b"origin", origin.encode())]
    for path in ("/api/agents", "/"):
        assert (await ask(fence("crew.home"), headers, path))[0] == (200 if passes else 403)


async def test_one_of_two_origins_is_enough_to_refuse() -> None:
    headers = [*host("localhost"), (b"origin", b"http://localhost"), (b"origin", b"http://evil.example")]
    assert (await ask(fence(), headers))[0] == 403


@pytest.mark.spec("GTW-018")
async def test_a_script_without_origin_passes() -> None:
    assert (await ask(fence(), host("localhost")))[0] == 200


@pytest.mark.spec("GTW-019")
@pytest.mark.parametrize(
    ("site", "api", "page"),
    [
        ("same-origin", 200, 200),
        ("none", 200, 200),
        ("cross-site", 403, 200),
        ("same-site", 403, 200),
        ("", 403, 200),
        ("anything", 403, 200),
    ],
)
async def test_fetch_sites(site: str, api: int, page: int) -> None:
    headers = [*host("localhost"), (b"sec-fetch-site", site.encode())]
    assert (await ask(fence(), headers, "/api/agents"))[0] == api
    assert (await ask(fence(), headers, "/"))[0] == page


@pytest.mark.spec("GTW-021")
async def test_forwarding_headers_of_a_stranger_are_ignored() -> None:
    forged = [
        *host("localhost"),
        (b"x-forwarded-host", b"evil.example"),
        (b"x-forwarded-for", b"1.2.3.4"),
        (b"x-forwarded-proto", b"https"),
        (b"forwarded", b"for=1.2.3.4;host=evil.example;proto=https"),
    ]
    assert await ask(fence(proxies=("192.168.0.0/24",)), forged) == (200, "10.0.0.9 localhost False")
    assert await ask(fence(), forged) == (200, "10.0.0.9 localhost False")
    hidden = [*host("evil.example"), (b"x-forwarded-host", b"localhost")]
    assert (await ask(fence(), hidden))[0] == 403


@pytest.mark.spec("GTW-021")
async def test_a_listed_proxy_says_who_calls_what() -> None:
    app = fence("crew.home", proxies=("10.0.0.0/24", "172.16.0.1/32"))
    headers = [
        *host("gateway:8765"),
        (b"x-forwarded-host", b"evil.example, crew.home"),
        (b"x-forwarded-for", b"6.6.6.6, 203.0.113.7, 172.16.0.1"),
        (b"x-forwarded-proto", b"https"),
        (b"origin", b"https://crew.home"),
    ]
    assert await ask(app, headers) == (200, "203.0.113.7 crew.home True")
    assert (await ask(app, [*host("gateway:8765"), (b"x-forwarded-host", b"evil.example")]))[0] == 403
    garbage = [*host("crew.home"), (b"x-forwarded-for", b"<script>, 10.0.0.1")]
    assert await ask(app, garbage) == (200, "10.0.0.1 crew.home False")
    mapped = await ask(
        app, [*host("crew.home"), (b"x-forwarded-for", b"203.0.113.9")], client="::ffff:10.0.0.9"
    )
    assert mapped == (200, "203.0.113.9 crew.home False")

"""The deployment behind each proxy of the documentation, over TLS and under a name."""

from __future__ import annotations

import os
import ssl
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpcore
import httpx
import pytest

from tests.e2e.compose.engine import Stack, docker, wait_until
from tests.e2e.compose.person import Owner, set_up_token
from tests.e2e.compose.proxies import NAME, PROXIES, certificate, program, running

pytestmark = pytest.mark.timeout(900)

# The sign of life comes every 15 s: two of them, each on its own, prove that silence of any length
# is lived through. Set to 600 for the ten minutes themselves.
SILENCE_SECONDS = float(os.environ.get("CREW_E2E_SILENCE_SECONDS", "36"))


class _Named(httpcore.NetworkBackend):
    """Connects to this machine whatever name is asked for, so that no hosts file is touched."""

    def __init__(self) -> None:
        self._real = httpcore.SyncBackend()

    def connect_tcp(self, host: str, port: int, *args: Any, **more: Any) -> httpcore.NetworkStream:
        return self._real.connect_tcp("127.0.0.1", port, *args, **more)


def _client_options(pem: Path) -> dict[str, Any]:
    transport = httpx.HTTPTransport(verify=ssl.create_default_context(cafile=str(pem)), retries=0)
    transport._pool._network_backend = _Named()
    return {"transport": transport}


class Proxied:
    """One proxy in front of the deployment."""

    def __init__(self, port: int, pem: Path) -> None:
        self.url = f"https://{NAME}:{port}"
        self._pem = pem

    def owner(self) -> Owner:
        """A browser of the owner, logged in through the proxy."""
        owner = Owner(self.url, **_client_options(self._pem), headers={"Origin": self.url})
        owner.log_in()
        return owner

    def stranger(self, **headers: str) -> httpx.Client:
        """Somebody without a credential."""
        return httpx.Client(base_url=self.url, timeout=30, headers=headers, **_client_options(self._pem))


@pytest.fixture(scope="module")
def behind(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment with the settings that the page names."""
    stack = Stack(
        f"crewproxy{uuid.uuid4().hex[:8]}",
        {
            "MY_AGENT_ROUTES": "fake:slow",
            "MY_AGENT_ALLOWED_HOSTS": NAME,
            "MY_AGENT_WEB_URL": f"https://{NAME}",
        },
    )
    try:
        stack.up()
        wait_until(lambda: "#/setup/" in stack.logs("gateway"), 60, lambda: stack.logs("gateway"))
        with Owner(stack.url) as owner:
            owner.set_up(set_up_token(stack.logs("gateway")))
        # The command of the page, under this project's name.
        shown = docker(
            "network", "inspect", "--format", "{{(index .IPAM.Config 0).Gateway}}", f"{stack.project}_edge"
        )
        stack.environ["MY_AGENT_TRUSTED_PROXIES"] = shown.stdout.strip()
        stack.up()
        yield stack
    finally:
        stack.down(volumes=True)


@pytest.fixture(scope="module")
def proxies(behind: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Proxied]]:
    """Every proxy that is installed, all at once in front of the one deployment."""
    with ExitStack() as running_ones:
        found = {}
        for proxy in PROXIES:
            if program(proxy) is not None:
                folder = tmp_path_factory.mktemp(proxy)
                pem, key = certificate(folder)
                port = running_ones.enter_context(running(proxy, folder, pem, key, behind.port))
                found[proxy] = Proxied(port, pem)
        yield found


@pytest.fixture(params=PROXIES)
def proxied(request: pytest.FixtureRequest, proxies: dict[str, Proxied]) -> Proxied:
    proxy: str = request.param
    if proxy not in proxies:
        pytest.skip(f"{proxy} is not installed: .ci/run brings it")
    return proxies[proxy]


@pytest.mark.spec("FLD-049", "GTW-017", "GTW-021")
def test_a_login_through_the_proxy_gets_a_cookie_for_tls_alone(proxied: Proxied) -> None:
    with proxied.owner() as owner:
        (cookie,) = owner.http.cookies.jar
        assert cookie.secure
        assert owner.get("/api/auth/session")["authenticated"] is True


@pytest.mark.spec("FLD-049", "GTW-017")
def test_another_origin_is_refused_through_the_proxy(proxied: Proxied) -> None:
    with proxied.stranger(Origin="https://evil.example") as client:
        assert client.post("/api/auth/login", json={"password": "x"}).status_code == 403
    with proxied.stranger(Origin=proxied.url) as client:
        assert client.post("/api/auth/login", json={"password": "x"}).status_code == 401


@pytest.mark.spec("FLD-049", "GTW-133")
def test_text_arrives_in_pieces_as_it_is_written(proxied: Proxied) -> None:
    words = " ".join(f"word{n}" for n in range(12))
    with proxied.owner() as owner:
        conversation = owner.converse("stream")
        sent = time.monotonic()
        path = f"/api/conversations/{conversation}/messages"
        with owner.http.stream("POST", path, json={"text": words}) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.headers["cache-control"] == "no-store, no-transform"
            assert "content-encoding" not in answer.headers
            arrivals = [time.monotonic() - sent for chunk in answer.iter_raw() if b"event:" in chunk]
    # What is collected on the way comes at once; the fake model takes a tenth of a second a piece.
    assert len(arrivals) >= 4
    assert arrivals[-1] - arrivals[0] > 0.3, arrivals
    assert arrivals[0] < 0.5, arrivals


@pytest.mark.spec("FLD-049")
def test_the_marks_against_buffering_leave_the_gateway(behind: Stack) -> None:
    with Owner(behind.url) as owner:
        owner.log_in()
        with owner.http.stream("GET", "/api/activity/stream") as answer:
            assert answer.headers["x-accel-buffering"] == "no"
            assert answer.headers["cache-control"] == "no-store, no-transform"


@pytest.mark.spec("FLD-049", "GTW-133")
def test_streams_live_through_silence(proxies: dict[str, Proxied]) -> None:
    assert proxies
    with ThreadPoolExecutor(len(proxies)) as readers:
        signs = dict(zip(proxies, readers.map(_signs_of_life, proxies.values()), strict=True))
    for proxy, times in signs.items():
        assert len(times) >= int(SILENCE_SECONDS // 18), (proxy, times)


def _signs_of_life(proxied: Proxied) -> list[float]:
    """When each came, in seconds from the start; each has to come by itself."""
    signs: list[float] = []
    with proxied.owner() as owner, owner.http.stream("GET", "/api/activity/stream") as answer:
        assert answer.status_code == 200
        began = time.monotonic()
        for chunk in answer.iter_raw():
            if chunk.startswith(b":"):
                signs.append(time.monotonic() - began)
            if time.monotonic() - began > SILENCE_SECONDS - 7:
                break
    return signs


@pytest.mark.spec("FLD-049")
def test_twenty_megabytes_reach_the_crew(proxied: Proxied) -> None:
    body = b'{"text": "' + b"a" * (20 * 1024 * 1024) + b'"}'
    with proxied.owner() as owner:
        conversation = owner.converse("large")
        path = f"/api/conversations/{conversation}/messages"
        answer = owner.http.post(path, content=body, headers={"Content-Type": "application/json"})
    # The crew's own refusal of so long a message, in its own form, and not the proxy's.
    assert answer.status_code == 413
    assert "detail" in answer.json()

"""What the crew reaches, and by which address it is reached."""

from __future__ import annotations

import http.client
import ipaddress
import socket
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from services.cli.doctor.findings import Finding, bad, good, note
from services.common.settings import CrewConfig

_SECONDS = 5.0
_OLLAMA = "http://127.0.0.1:11434/v1"
_FAKE_DNS = ipaddress.ip_network("198.18.0.0/15")
# The provider of a route, the variable of its key, and the name its requests go to.
_PROVIDERS = {"openrouter": ("OPENROUTER_API_KEY", "openrouter.ai")}


def models(config: CrewConfig, variables: Mapping[str, str]) -> Iterator[Finding]:
    """Whether each provider in the routes can be used; keys are said to be there, never shown."""
    for provider in dict.fromkeys(route.partition(":")[0] for route in config.routes):
        if provider == "fake":
            yield note("model_fake")
        elif provider == "ollama":
            yield _local_server(variables.get("OLLAMA_BASE_URL", "").strip() or _OLLAMA)
        elif provider in _PROVIDERS:
            name, host = _PROVIDERS[provider]
            present = bool(variables.get(name, "").strip())
            yield good("model_key", variable=name) if present else bad("model_no_key", variable=name)
            yield public_name(host)
        else:
            yield note("model_other", provider=provider)


def public_name(host: str) -> Finding:
    """Whether a public name resolves, and to a public address (FLD-050)."""
    try:
        found = socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    except OSError as error:
        return bad("dns_failed", host=host, problem=error.strerror)
    addresses = {ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found}
    odd = next((address for address in sorted(addresses, key=str) if not address.is_global), None)
    if odd is None:
        return good("dns", host=host)
    if odd in _FAKE_DNS:
        return bad("dns_fake", host=host, address=odd, range=_FAKE_DNS)
    return bad("dns_private", host=host, address=odd)


def proxy(url: str) -> Iterator[Finding]:
    """Whether the crew answers at `url` as a browser would ask it, through whatever is before it."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        yield bad("url_wrong", url=url)
        return
    origin = f"{parts.scheme}://{parts.netloc}"
    try:
        status, headers = _get(parts.scheme, parts.hostname, parts.port, origin)
    except (OSError, http.client.HTTPException) as error:
        yield bad("url_unreachable", url=origin, problem=str(error)[:200])
        return
    if status == 403:
        yield bad("url_refused", url=origin, name=parts.hostname)
    elif status not in {200, 503}:
        yield bad("url_other", url=origin, status=status)
    else:
        yield good("url", url=origin)
    if parts.scheme == "https" and status == 200 and "strict-transport-security" not in headers:
        yield note("url_no_hsts", url=origin)


def _local_server(url: str) -> Finding:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((host, port), timeout=_SECONDS).close()
    except ConnectionRefusedError:
        return bad("server_refused", address=f"{host}:{port}")
    except OSError as error:
        return bad("server_unreachable", address=f"{host}:{port}", problem=error.strerror or str(error))
    return good("server", address=f"{host}:{port}")


def _get(scheme: str, host: str, port: int | None, origin: str) -> tuple[int, set[str]]:
    kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
    connection = kind(host, port, timeout=_SECONDS)
    try:
        connection.request("GET", "/api/health", headers={"Origin": origin, "Sec-Fetch-Site": "same-origin"})
        answer = connection.getresponse()
        answer.read(65536)
        return answer.status, {name.lower() for name, _ in answer.getheaders()}
    finally:
        connection.close()

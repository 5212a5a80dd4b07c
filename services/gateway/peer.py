"""Who is at the other end of a request: address, the host it calls, and whether TLS protects it.

A proxy's word on these counts only when the proxy itself is listed (GTW-021).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import cast

from starlette.types import Scope

Network = IPv4Network | IPv6Network
_STATE = "crew.peer"


@dataclass(frozen=True, slots=True)
class Peer:
    """One end of a connection, as far as it can be believed."""

    # Of the client; empty when the transport has none.
    address: str
    # What the client calls, with its port; None when it does not say, or says several things.
    host: str | None
    # The client's side of the connection is encrypted.
    secure: bool


def peer_of(scope: Scope) -> Peer:
    """The peer that the fence has found for this request."""
    return cast(Peer, scope[_STATE])


def find_peer(scope: Scope, trusted: Sequence[Network]) -> Peer:
    """Work the peer out and keep it for `peer_of`.

    Args:
        scope: Of an HTTP request.
        trusted: Proxies whose ``X-Forwarded-For``, ``-Host`` and ``-Proto`` are believed. Of several
            values the last counts, which is the one the nearest proxy has added; in
            ``X-Forwarded-For`` the last that is no trusted proxy itself.
    """
    client = scope.get("client")
    address = str(client[0]) if client else ""
    host = _single(scope, b"host")
    secure = scope.get("scheme") == "https"
    if trusted and _listed(address, trusted):
        if (forwarded := _last(scope, b"x-forwarded-host")) is not None:
            host = forwarded
        if (scheme := _last(scope, b"x-forwarded-proto")) is not None:
            secure = scheme.lower() == "https"
        for hop in reversed(_values(scope, b"x-forwarded-for")):
            if _parsed(hop) is None:
                break
            address = hop
            if not _listed(hop, trusted):
                break
    peer = Peer(address, host, secure)
    scope[_STATE] = peer
    return peer


def header(scope: Scope, name: bytes) -> str | None:
    """The last value of a header, or None."""
    found = [value for key, value in scope["headers"] if key == name]
    return found[-1].decode("latin-1") if found else None


def headers(scope: Scope, name: bytes) -> list[str]:
    """Every value of a header, as it came."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _single(scope: Scope, name: bytes) -> str | None:
    found = headers(scope, name)
    return found[0] if len(found) == 1 else None


def _values(scope: Scope, name: bytes) -> list[str]:
    return [part.strip() for value in headers(scope, name) for part in value.split(",") if part.strip()]


def _last(scope: Scope, name: bytes) -> str | None:
    values = _values(scope, name)
    return values[-1] if values else None


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _listed(text: str, networks: Sequence[Network]) -> bool:
    address = _parsed(text)
    return address is not None and any(
        address.version == network.version and address in network for network in networks
    )

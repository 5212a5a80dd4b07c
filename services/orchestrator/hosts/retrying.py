"""When a failed call to a host is made again: decided by what the call does (tools.md 5.3)."""

from __future__ import annotations

from typing import Literal

import grpc

from services.common.toolhost.contract import Effect

# First wait in seconds; each next one is twice as long.
FIRST_WAIT = 0.5
MOST_RETRIES = 3

Failure = Literal["refused_before", "server_error", "lost", "other"]

_SERVER_ERRORS = frozenset(
    {
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)


def failure_of(code: grpc.StatusCode, *, connected: bool) -> Failure:
    """What a gRPC status says about the effect (TLS-069).

    Args:
        code: Of the failed call.
        connected: There was a connection when the request was sent, so it may have arrived.
    """
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return "refused_before"
    if code is grpc.StatusCode.UNAVAILABLE:
        return "lost" if connected else "refused_before"
    return "server_error" if code in _SERVER_ERRORS else "other"


def may_retry(failure: Failure, effect: Effect) -> bool:
    """Whether the same call may be made again after `failure` (TLS-065 to 067).

    A lost host is the caller's to decide: that depends on `replay_safe` (PIP-043).
    """
    match failure:
        case "refused_before":
            return True
        case "server_error":
            return effect in {"read", "replace"}
        case "lost" | "other":
            return False

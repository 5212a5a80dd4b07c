"""Asks a service whether it serves, for the health check of its container.

``python -m services.common.rpc.probe ADDRESS`` ends with 0 when it does and 1 when not. ADDRESS is
what the service listens on (``host:port`` or ``unix:/path``, asked by ``grpc.health.v1``) or an
``http://`` address, which has to answer with 200.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

TIMEOUT_SECONDS = 5.0


def serves(address: str, timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """Ask once.

    Returns:
        Empty when it serves, else what happened, for the engine's record of health checks.
    """
    if address.startswith("http://"):
        return _http(address, timeout_seconds)
    return _grpc(address, timeout_seconds)


def _http(url: str, timeout_seconds: float) -> str:
    # No proxy of the environment: the address is this container's own.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=timeout_seconds):
            return ""
    except (OSError, urllib.error.URLError) as error:
        return str(error)


def _grpc(address: str, timeout_seconds: float) -> str:
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with grpc.insecure_channel(address, options=(("grpc.enable_http_proxy", 0),)) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=timeout_seconds)
        except grpc.RpcError as error:
            return str(error.code())
    if answer.status == health_pb2.HealthCheckResponse.SERVING:
        return ""
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status))


def main() -> int:
    """Ask the address in the argument list."""
    problem = serves(sys.argv[1])
    if problem:
        sys.stderr.write(f"{problem}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())

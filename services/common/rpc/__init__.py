"""gRPC between the services: servers and channels that know their direction, language and trace."""

from services.common.rpc.client import DEFAULT_DEADLINE_SECONDS, DirectedChannel, connect
from services.common.rpc.handling import around_method, caller_of, locale_from
from services.common.rpc.server import RpcServer
from services.common.rpc.tokens import Arrow, Verifier, issue, read_token

__all__ = [
    "DEFAULT_DEADLINE_SECONDS",
    "Arrow",
    "DirectedChannel",
    "RpcServer",
    "Verifier",
    "around_method",
    "caller_of",
    "connect",
    "issue",
    "locale_from",
    "read_token",
]

"""Channels to another service of the crew."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from services.common.rpc import trace
from services.common.rpc.options import CLIENT_OPTIONS
from services.common.rpc.tokens import Arrow, read_token

# Of a unary call that brings none of its own.
DEFAULT_DEADLINE_SECONDS = 30.0

Metadata = Sequence[tuple[str, str | bytes]]


def connect(address: str, *, caller: str, called: str, secrets_dir: Path) -> DirectedChannel:
    """A channel from one service to another, with the token of that direction.

    Connecting happens with the first call and again after each loss, at most a second apart.

    Args:
        address: ``host:port`` or ``unix:/path``.
        caller: Name of this service.
        called: Name of the other.
        secrets_dir: This service's own folder of secrets.

    Raises:
        StartError: The token of this direction is missing or damaged.
    """
    return DirectedChannel(address, token=read_token(secrets_dir, Arrow(caller, called)))


class DirectedChannel(grpc.aio.Channel):
    """A channel whose every call carries the token, the current trace and a deadline.

    Generated stubs take it like any other channel. A unary answer without a ``timeout`` of its own
    gets `DEFAULT_DEADLINE_SECONDS`; streams get none.

    Args:
        address: ``host:port`` or ``unix:/path``.
        token: Sent as ``authorization: Bearer``; empty sends none.
    """

    def __init__(self, address: str, *, token: str = "") -> None:
        self._channel = grpc.aio.insecure_channel(address, options=CLIENT_OPTIONS)
        self._fixed: Metadata = (("authorization", f"Bearer {token}"),) if token else ()

    def unary_unary(self, *args: Any, **kwargs: Any) -> Any:
        """A callable for one request and one answer."""
        return _Callable(self._channel.unary_unary(*args, **kwargs), self._fixed, DEFAULT_DEADLINE_SECONDS)

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        """A callable for a stream of requests and one answer."""
        return _Callable(self._channel.stream_unary(*args, **kwargs), self._fixed, None)

    def unary_stream(self, *args: Any, **kwargs: Any) -> Any:
        """A callable for one request and a stream of answers."""
        return _Callable(self._channel.unary_stream(*args, **kwargs), self._fixed, None)

    def stream_stream(self, *args: Any, **kwargs: Any) -> Any:
        """A callable for two streams."""
        return _Callable(self._channel.stream_stream(*args, **kwargs), self._fixed, None)

    async def close(self, grace: float | None = None) -> None:
        """End the channel; running calls get `grace` seconds."""
        await self._channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """The state of the connection."""
        return self._channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the state is another one."""
        await self._channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until there is a connection."""
        await self._channel.channel_ready()

    async def __aenter__(self) -> DirectedChannel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Callable:
    """Completes the metadata and the deadline of one method's calls.

    An interceptor could do the same, but costs a task per call and hides the call object.
    """

    __slots__ = ("_call", "_deadline", "_fixed")

    def __init__(self, call: Callable[..., Any], fixed: Metadata, deadline: float | None) -> None:
        self._call = call
        self._fixed = fixed
        self._deadline = deadline

    def __call__(
        self,
        request: Any | Iterable[Any] | AsyncIterable[Any] | None = None,
        *,
        timeout: float | None = None,
        metadata: Metadata = (),
        **kwargs: Any,
    ) -> Any:
        here = trace.current() or trace.Trace.begin()
        complete = (*self._fixed, ("traceparent", here.header), *(metadata or ()))
        return self._call(
            request, timeout=timeout if timeout is not None else self._deadline, metadata=complete, **kwargs
        )

"""Calls to the orchestrator: one callable a method, with who calls and in which language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc.aio
from crew.v1 import auth_pb2
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from services.common.api import PRINCIPAL_METADATA, ApiMethod
from services.common.wording import Locale

Metadata = tuple[tuple[str, str | bytes], ...]


def about(principal: auth_pb2.Principal | None, address: str, locale: Locale) -> Metadata:
    """The metadata of a call on somebody's behalf; without a principal nobody is named."""
    language: Metadata = (("accept-language", locale),)
    if principal is None:
        return language
    named = auth_pb2.Principal()
    named.CopyFrom(principal)
    named.address = address
    return (*language, (PRINCIPAL_METADATA, named.SerializeToString()))


class Upstream:
    """The orchestrator, method by method.

    Args:
        channel: With the token of the direction gateway to orchestrator.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self._callables: dict[str, Callable[..., Any]] = {}

    async def call(self, method: ApiMethod, request: Message, metadata: Metadata) -> Message:
        """Make a unary call.

        Raises:
            AioRpcError: It failed, or took longer than the method's deadline.
        """
        call = self._callable(method)(request, metadata=metadata, timeout=method.deadline_seconds)
        answer: Message = await call
        return answer

    def stream(
        self, method: ApiMethod, request: Message, metadata: Metadata
    ) -> grpc.aio.UnaryStreamCall[Message, Message]:
        """Begin a call that answers with a stream; nothing of it is awaited yet."""
        call: grpc.aio.UnaryStreamCall[Message, Message] = self._callable(method)(request, metadata=metadata)
        return call

    def _callable(self, method: ApiMethod) -> Callable[..., Any]:
        made = self._callables.get(method.path)
        if made is None:
            make = self._channel.unary_stream if method.streams else self._channel.unary_unary
            made = make(
                method.path,
                request_serializer=GetMessageClass(method.request).SerializeToString,
                response_deserializer=GetMessageClass(method.response).FromString,
            )
            self._callables[method.path] = made
        return made

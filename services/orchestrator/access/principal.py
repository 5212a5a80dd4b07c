"""Who stands behind a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import grpc.aio
from crew.v1 import auth_pb2

from services.common.api import OWNER_SCOPES, PRINCIPAL_METADATA
from services.common.rpc import caller_of
from services.common.times import iso


@dataclass(frozen=True, slots=True)
class Principal:
    """A person or a program, and what they may do."""

    # "session", "token", "local" (no login is asked), "terminal" (the command line), or "nobody".
    kind: str
    id: str = ""
    # Of the token.
    name: str = ""
    scopes: Sequence[str] = ()
    # Of the caller, as the gateway sees it.
    address: str = ""
    expires_at: datetime | None = None

    @property
    def decider(self) -> str:
        """How a decision of theirs is signed: ``owner`` or ``token:<name>``."""
        return f"token:{self.name}" if self.kind == "token" else "owner"

    def message(self) -> auth_pb2.Principal:
        """As it travels."""
        return auth_pb2.Principal(
            kind=self.kind,
            id=self.id,
            name=self.name,
            scopes=self.scopes,
            address=self.address,
            expires_at=None if self.expires_at is None else iso(self.expires_at),
        )


NOBODY = Principal("nobody")


def principal_of(context: grpc.aio.ServicerContext[Any, Any]) -> Principal:
    """Who stands behind the call at hand.

    What the metadata says is believed, as the token of the direction has shown which service says
    it. The gateway names nobody for callers without a credential; the other services call for the
    owner at the machine unless they pass somebody on.
    """
    packed = dict(context.invocation_metadata() or ()).get(PRINCIPAL_METADATA)
    if isinstance(packed, bytes):
        return from_message(auth_pb2.Principal.FromString(packed))
    return NOBODY if caller_of() == "gateway" else Principal("terminal", "terminal", scopes=OWNER_SCOPES)


def from_message(message: auth_pb2.Principal) -> Principal:
    """A principal that has travelled."""
    return Principal(
        kind=message.kind,
        id=message.id,
        name=message.name,
        scopes=tuple(message.scopes),
        address=message.address,
    )

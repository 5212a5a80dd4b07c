"""The faults a caller can be told about.

One tree: each class is one way a request can fail, with the gRPC code and the HTTP status it
becomes at the edge. What is raised carries a stable reason for programs and a catalogue key with
its values for people; the sentence is made in the caller's language where the answer leaves.
Anything that is not a `CrewError` is a bug and leaves as an internal error without its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import grpc


class CrewError(Exception):
    """A request that cannot be carried out, in words a person can act on.

    Args:
        reason: Stable upper-case name for programs, such as ``QUEUE_FULL`` (GTW-279).
        key: Catalogue key of the sentence.
        values: What the sentence names. Never a secret.
        detail: Fields for an object-shaped ``detail`` of the HTTP answer (GTW-038).
    """

    code: ClassVar[grpc.StatusCode] = grpc.StatusCode.UNKNOWN
    http_status: ClassVar[int] = 500

    def __init__(
        self, reason: str, key: str, *, detail: Mapping[str, object] | None = None, **values: object
    ) -> None:
        super().__init__(f"{reason}: {key}")
        self.reason = reason
        self.key = key
        self.values = values
        self.detail = detail


class NotApplicable(CrewError):
    """The request makes sense, but not for this object (400)."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    http_status = 400


class Unauthenticated(CrewError):
    """No credential, or one that is not valid (401)."""

    code = grpc.StatusCode.UNAUTHENTICATED
    http_status = 401


class Forbidden(CrewError):
    """A valid credential without the right to this (403)."""

    code = grpc.StatusCode.PERMISSION_DENIED
    http_status = 403


class NotFound(CrewError):
    """What was named does not exist (404)."""

    code = grpc.StatusCode.NOT_FOUND
    http_status = 404


class Conflict(CrewError):
    """The state forbids it now: waiting, decided, disabled (409)."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    http_status = 409


class Stale(CrewError):
    """Something else was written meanwhile, or one name was used for two things (409)."""

    code = grpc.StatusCode.ABORTED
    http_status = 409


class Gone(CrewError):
    """It existed and does not any more (410)."""

    code = grpc.StatusCode.NOT_FOUND
    http_status = 410


class TooLarge(CrewError):
    """Over a size limit that the sentence names (413)."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    http_status = 413


class Invalid(CrewError):
    """A value outside what the field allows (422)."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    http_status = 422


class LimitReached(CrewError):
    """A queue or a rate is full; later it may work (429)."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    http_status = 429


class Unavailable(CrewError):
    """A service this needs does not answer (503)."""

    code = grpc.StatusCode.UNAVAILABLE
    http_status = 503


class StoreFull(CrewError):
    """No room to keep it (507)."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    http_status = 507

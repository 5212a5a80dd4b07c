"""Refusals as HTTP answers: a status and ``{"detail": …}`` in the reader's language (GTW-038)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import grpc
import grpc.aio
from google.protobuf import json_format, struct_pb2
from google.rpc import error_details_pb2, status_pb2
from starlette.responses import Response

from services.common.errors import CrewError
from services.common.wording import Catalogue, Locale
from services.gateway.http.encoding import to_json

STATUS_METADATA = "grpc-status-details-bin"
# Of an error that brings no HTTP status of its own.
_BY_CODE: Mapping[grpc.StatusCode, int] = {
    grpc.StatusCode.INVALID_ARGUMENT: 422,
    grpc.StatusCode.OUT_OF_RANGE: 422,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.FAILED_PRECONDITION: 409,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 503,
    grpc.StatusCode.CANCELLED: 503,
}
_SENTENCES: Mapping[int, str] = {
    403: "error.upstream.forbidden",
    404: "error.upstream.not_found",
    409: "error.upstream.conflict",
    422: "error.upstream.invalid",
    429: "error.upstream.full",
    503: "error.upstream.away",
}
# The reasons by which the called side refuses the gateway itself, not the person.
_NOT_THE_CALLER = frozenset({"DIRECTION_TOKEN"})


class WrongMethod(CrewError):
    """The address exists, but not with this HTTP method (405)."""

    code = grpc.StatusCode.UNIMPLEMENTED
    http_status: ClassVar[int] = 405


class TooSlow(CrewError):
    """The request did not arrive in the time it has (408)."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED
    http_status: ClassVar[int] = 408


@dataclass(frozen=True, slots=True)
class Problem:
    """What a refusal looks like over HTTP."""

    status: int
    detail: str | Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> Response:
        """The answer that carries it."""
        return Response(
            to_json({"detail": self.detail}),
            status_code=self.status,
            headers={"Cache-Control": "no-store", **self.headers},
            media_type="application/json",
        )


def problem_of(error: CrewError, catalogue: Catalogue, locale: Locale) -> Problem:
    """A refusal of the gateway itself."""
    sentence = catalogue.text(locale, error.key, **error.values)
    detail: str | Mapping[str, Any] = sentence
    headers: dict[str, str] = {}
    if error.detail is not None:
        detail = {"error": error.reason, "message": sentence, **error.detail}
    if error.http_status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, WrongMethod):
        headers["Allow"] = str(error.values["allowed"])
    return Problem(error.http_status, detail, headers)


def upstream_problem(error: grpc.aio.AioRpcError, catalogue: Catalogue, locale: Locale) -> Problem:
    """A refusal of the orchestrator, or its absence.

    The sentence is the orchestrator's when it sent one; text of the transport is never shown.
    """
    status = _details(error)
    reason, http_status, sentence, fields = "", 0, "", None
    for packed in status.details if status is not None else ():
        if packed.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
            info = error_details_pb2.ErrorInfo()
            packed.Unpack(info)
            reason, text = info.reason, info.metadata.get("http_status", "")
            http_status = int(text) if text.isdecimal() and 400 <= int(text) <= 599 else 0
        elif packed.Is(error_details_pb2.LocalizedMessage.DESCRIPTOR):
            message = error_details_pb2.LocalizedMessage()
            packed.Unpack(message)
            sentence = message.message
        elif packed.Is(struct_pb2.Struct.DESCRIPTOR):
            struct = struct_pb2.Struct()
            packed.Unpack(struct)
            fields = json_format.MessageToDict(struct)
    if not reason or not sentence or reason in _NOT_THE_CALLER:
        http_status = _BY_CODE.get(error.code(), 500) if not reason else 503
        key = _SENTENCES.get(http_status, "error.unexpected")
        if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            key = "error.upstream.slow"
        return Problem(http_status, catalogue.text(locale, key))
    http_status = http_status or _BY_CODE.get(error.code(), 500)
    headers = {"WWW-Authenticate": "Bearer"} if http_status == 401 else {}
    if fields is None:
        return Problem(http_status, sentence, headers)
    if isinstance(seconds := fields.get("retry_after_seconds"), float):
        headers["Retry-After"] = str(max(1, round(seconds)))
    return Problem(http_status, {"error": reason, "message": sentence, **fields}, headers)


def _details(error: grpc.aio.AioRpcError) -> status_pb2.Status | None:
    for key, value in error.trailing_metadata() or ():
        if key == STATUS_METADATA and isinstance(value, bytes):
            try:
                return status_pb2.Status.FromString(value)
            except ValueError:
                return None
    return None

"""From an exception to the status a caller sees: code, stable reason, sentence and fields."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from google.protobuf import any_pb2, json_format, struct_pb2
from google.rpc import error_details_pb2, status_pb2

from services.common.errors import CrewError
from services.common.wording import Catalogue, Locale

DOMAIN = "crew.v1"
STATUS_KEY = "grpc-status-details-bin"
# Larger details would make the caller see RESOURCE_EXHAUSTED instead of the error.
_MAX_DETAIL_BYTES = 4 * 1024
_MAX_SENTENCE = 1_000


def status_of(error: CrewError, catalogue: Catalogue, locale: Locale) -> status_pb2.Status:
    """The status of an error that a caller can be told about, its sentence in `locale`."""
    sentence = catalogue.text(locale, error.key, **error.values)[:_MAX_SENTENCE]
    return _status(error.code, error.reason, error.http_status, sentence, locale, error.detail)


def internal(catalogue: Catalogue, locale: Locale, trace_id: str) -> status_pb2.Status:
    """The status of a bug: where to look it up, and nothing of its text."""
    sentence = catalogue.text(locale, "error.internal", trace=trace_id)
    return _status(grpc.StatusCode.INTERNAL, "INTERNAL", 500, sentence, locale, None)


def _status(
    code: grpc.StatusCode,
    reason: str,
    http_status: int,
    sentence: str,
    locale: Locale,
    detail: Mapping[str, object] | None,
) -> status_pb2.Status:
    details = [
        _packed(
            error_details_pb2.ErrorInfo(
                reason=reason, domain=DOMAIN, metadata={"http_status": str(http_status)}
            )
        ),
        _packed(error_details_pb2.LocalizedMessage(locale=locale, message=sentence)),
    ]
    if detail is not None:
        fields = struct_pb2.Struct()
        json_format.ParseDict(dict(detail), fields)
        if fields.ByteSize() <= _MAX_DETAIL_BYTES:
            details.append(_packed(fields))
    number: int = code.value[0]
    return status_pb2.Status(code=number, message=sentence, details=details)


def _packed(
    message: error_details_pb2.ErrorInfo | error_details_pb2.LocalizedMessage | struct_pb2.Struct,
) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed

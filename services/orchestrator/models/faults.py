"""What can go wrong with an attempt, and what it means: ask again, go on, or make it smaller."""

from __future__ import annotations

import datetime as dt
import email.utils
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from services.orchestrator.models.contract import Fault

# Passing failures: the same route may answer a moment later (TRN-243).
_PASSING_STATUSES = frozenset({408, 425, 429})
MAX_MESSAGE_CHARS = 300
# What is shorter is a stand-in for a key and stands in many words.
_SHORTEST_SECRET = 4

_OVERFLOW = re.compile(
    r"context[ _]length[ _]exceeded|maximum context length|context[ _]window|available context size"
    r"|exceed\w* (?:the )?(?:model'?s? )?(?:max\w* )?context|greater than the context length"
    r"|(?:prompt|input|request)(?: \w+){0,3} (?:is )?too (?:long|large)|maximum prompt length"
    r"|token count.{0,40}exceeds|too many (?:input |prompt )?tokens|reduce the length of the messages"
    r"|exceeded model token limit|request_too_large|context_size",
    re.IGNORECASE,
)
# "Too many tokens per minute" is a rate, not a size.
_RATE = re.compile(r"per (?:minute|day|hour|second)|rate.?limit|quota|\bTPM\b", re.IGNORECASE)
_USAGE_OPTION = re.compile(r"stream_options|include_usage|\busage\b", re.IGNORECASE)
_KEY_SHAPES = re.compile(
    r"(?i:bearer|basic)\s+[\w.~+/=-]{8,}|\b(?:sk|pk|rk|gsk|xai|key)[-_][\w-]{8,}|\bAIza[\w-]{20,}"
    r"|(?<=://)[^/\s@]+@"
)


class AttemptFailed(Exception):
    """One request to one route failed.

    Args:
        fault: What happened.
        passing: Asking the same route again may help (TRN-243).
        retry_after: Seconds after which the provider wants to be asked again.
        usage_option: The server refused to be asked for usage (FLD-011).
    """

    def __init__(
        self,
        fault: Fault,
        *,
        passing: bool = False,
        retry_after: float | None = None,
        usage_option: bool = False,
    ) -> None:
        super().__init__(fault.key)
        self.fault = fault
        self.passing = passing
        self.retry_after = retry_after
        self.usage_option = usage_option


def refused(status: int, headers: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> AttemptFailed:
    """Read an error answer."""
    message = _message_of(body)
    retry_after = _seconds(headers)
    if _is_overflow(status, message + " " + _code_of(body)):
        return AttemptFailed(_overflow(message, secrets, status))
    return AttemptFailed(
        _status_fault("status", status, message, secrets),
        passing=_passes(status),
        retry_after=retry_after,
        usage_option=status in (400, 422) and bool(_USAGE_OPTION.search(message)),
    )


def inside_stream(error: object, secrets: Sequence[str]) -> AttemptFailed:
    """Read the error object of an answer that began with status 200 (TRN-243, TRN-244)."""
    fields = error if isinstance(error, Mapping) else {"message": error}
    message = _words(fields.get("message"))
    code = fields.get("code", fields.get("status"))
    status = int(str(code)) if re.fullmatch(r"[1-5]\d\d", str(code)) else None
    kinds = {_words(code), _words(fields.get("type")), _words(fields.get("kind"))}
    metadata = fields.get("metadata")
    if isinstance(metadata, Mapping):
        kinds |= {_words(metadata.get("error_type")), _words(metadata.get("type"))}
    if _is_overflow(status or 400, " ".join([message, *sorted(kinds)])):
        return AttemptFailed(_overflow(message, secrets, status))
    return AttemptFailed(
        _status_fault("upstream", status, message, secrets),
        passing="provider_unavailable" in kinds or (status is not None and _passes(status)),
    )


def no_connection(place: str) -> AttemptFailed:
    """Nothing listens there, or the name does not resolve."""
    return AttemptFailed(Fault("transport", "models.fault.no_connection", {"place": place}), passing=True)


def broken_connection(place: str) -> AttemptFailed:
    """The connection broke, or the stream ended without saying that it was whole."""
    return AttemptFailed(Fault("transport", "models.fault.broken_connection", {"place": place}), passing=True)


def silent(place: str, seconds: float) -> AttemptFailed:
    """Nothing came for longer than allowed (FLD-009)."""
    values = {"place": place, "seconds": f"{seconds:g}"}
    return AttemptFailed(Fault("timeout", "models.fault.silent", values), passing=True)


def malformed(place: str) -> AttemptFailed:
    """What came is no chat-completions stream; asking again is not expected to help (TRN-244)."""
    return AttemptFailed(Fault("malformed", "models.fault.malformed", {"place": place}))


def oversized(place: str, limit_bytes: int) -> AttemptFailed:
    """A reply without end."""
    values = {"place": place, "limit": limit_bytes // 1_000_000}
    return AttemptFailed(Fault("malformed", "models.fault.oversized", values))


def unusable_key(provider: str) -> AttemptFailed:
    """The configured key holds characters that no header can carry."""
    return AttemptFailed(Fault("no_key", "models.fault.unusable_key", {"provider": provider}))


def masked(text: str, secrets: Sequence[str]) -> str:
    """Cut foreign words to a sentence's length, keys in them replaced, on one line."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    text = _KEY_SHAPES.sub("***", text)
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return text if len(text) <= MAX_MESSAGE_CHARS else text[: MAX_MESSAGE_CHARS - 1] + "…"


def _status_fault(kind: Any, status: int | None, message: str, secrets: Sequence[str]) -> Fault:
    said = masked(message, secrets)
    name = {401: "key_refused", 403: "key_refused", 402: "no_credit", 404: "no_model", 429: "busy"}.get(
        status or 0, "status" if status is not None else "upstream"
    )
    key = f"models.fault.{name}" if said else f"models.fault.{name}_silent"
    return Fault(kind, key, {"status": status, "said": said}, status)


def _overflow(message: str, secrets: Sequence[str], status: int | None) -> Fault:
    return Fault("overflow", "models.fault.overflow", {"said": masked(message, secrets)}, status)


def _is_overflow(status: int, words: str) -> bool:
    if status == 413:
        return True
    return status in (400, 422, 500) and bool(_OVERFLOW.search(words)) and not _RATE.search(words)


def _passes(status: int) -> bool:
    return status in _PASSING_STATUSES or 500 <= status <= 599


def _error_of(body: bytes) -> Any:
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(parsed, list) and parsed:
        parsed = parsed[0]
    return parsed.get("error", parsed) if isinstance(parsed, dict) else parsed


def _message_of(body: bytes) -> str:
    error = _error_of(body)
    if isinstance(error, Mapping):
        said = _words(error.get("message")) or _words(error.get("detail"))
        metadata = error.get("metadata")
        # OpenRouter: "Provider returned error", with the provider's own words in `raw`.
        raw = _words(metadata.get("raw")) if isinstance(metadata, Mapping) else ""
        return f"{said}: {raw}" if said and raw else said or raw
    if isinstance(error, str):
        return error
    text = body.decode("utf-8", "replace").strip()
    # A web page of a proxy in between says nothing to a person.
    return "" if text.startswith("<") else text


def _code_of(body: bytes) -> str:
    error = _error_of(body)
    return f"{error.get('code')} {error.get('type')}" if isinstance(error, Mapping) else ""


def _words(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None or isinstance(value, bool) else orjson.dumps(value).decode()


def _seconds(headers: Mapping[str, str]) -> float | None:
    """`Retry-After`, in seconds or as a date; never negative."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", value):
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return max(0.0, (moment - dt.datetime.now(dt.UTC)).total_seconds())

"""What a person's message asks for before any model sees it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from services.common.errors import Invalid, TooLarge
from services.orchestrator.store.records import QueueKind

# Characters of one message.
MESSAGE_CHARS = 200_000
# Sources that only the system itself may name (TRN-047).
_RESERVED = frozenset({"chat", "telegram", "web", "job"})
_RESERVED_PREFIXES = ("job:", "delegate:", "memory:")
_SOURCE_CHARS = 64
_CHANNEL_CHARS = 64
_STEER = re.compile(r"/steer(?:\s+(?P<text>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message as it enters the log; `kind` counts when a turn is running."""

    text: str
    kind: QueueKind


def read(text: str) -> Spoken:
    """Read a person's message: ``/steer <text>`` joins a running turn, anything else waits for it.

    Raises:
        TooLarge: More than `MESSAGE_CHARS` characters.
        Invalid: Blank, or a bare ``/steer`` (TRN-078).
    """
    if len(text) > MESSAGE_CHARS:
        raise TooLarge("MESSAGE_TOO_LONG", "error.message_too_long", limit=MESSAGE_CHARS, length=len(text))
    if not text.strip():
        raise Invalid("EMPTY_MESSAGE", "error.empty_message")
    if (match := _STEER.fullmatch(text.strip())) is None:
        return Spoken(text, "follow_up")
    words = (match["text"] or "").strip()
    if not words:
        raise Invalid("BARE_STEER", "error.bare_steer")
    return Spoken(words, "steer")


def check_source(source: str) -> str:
    """The label an outside program gives its run.

    Raises:
        Invalid: A name of the server's own channels, too long, or not printable (TRN-047).
    """
    if source in _RESERVED or source.startswith(_RESERVED_PREFIXES):
        raise Invalid("RESERVED_SOURCE", "error.reserved_source", source=source)
    if not source or len(source) > _SOURCE_CHARS or not source.isprintable():
        raise Invalid("BAD_SOURCE", "error.bad_source", limit=_SOURCE_CHARS)
    return source


def check_channel(channel: str) -> str:
    """``api`` or ``api:<label>``: the channels that programs may name (TRN-005).

    Raises:
        Invalid: Any other channel, which would be somebody else's conversation.
    """
    label = channel.removeprefix("api:")
    named = label != channel and label and label.isprintable()
    if (channel != "api" and not named) or len(channel) > _CHANNEL_CHARS:
        raise Invalid("BAD_CHANNEL", "error.bad_channel", channel=channel[:_CHANNEL_CHARS])
    return channel


def check_request_id(request_id: str) -> str:
    """The name a sender gave its message.

    Raises:
        Invalid: Not 1 to 100 printable ASCII characters (GTW-084).
    """
    if not re.fullmatch(r"[\x20-\x7e]{1,100}", request_id):
        raise Invalid("BAD_REQUEST_ID", "error.bad_request_id")
    return request_id

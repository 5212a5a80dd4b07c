"""The conversation as a provider gets it: wire ids, complete pairs, stubs for old results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.common.wording import Locale, load
from services.orchestrator.models.contract import ChatMessage, WireCall
from services.orchestrator.store.records import Message, StoredCall

# Results are stubbed so many at a time, and so many newest ones stay whole (AGT-199, 200).
BLOCK = 10
# Never stubbed (AGT-202).
KEPT_WHOLE = frozenset({"delegate"})
# A result this short costs no more than its stub.
SHORT_CHARS = 200
# Longer ids of providers are refused by some others.
_LONGEST_WIRE_ID = 64


def chat_messages(messages: Sequence[Message], locale: Locale) -> list[ChatMessage]:
    """The log as messages of a request.

    Each call has exactly one result, right after its message (TRN-138); details and context of
    messages are never sent.
    """
    wire_ids = _wire_ids(messages)
    stubbed = _stubbed(messages)
    results = {message.tool_call_id: message for message in messages if message.role == "tool"}
    sent: list[ChatMessage] = []
    for message in messages:
        if message.role == "tool":
            continue
        sent.append(_spoken(message, wire_ids))
        for call in message.tool_calls:
            result = results.get(call.id)
            text = _result_text(call, result, result is not None and result.id in stubbed, locale)
            sent.append(ChatMessage("tool", text, tool_call_id=wire_ids[call.id]))
    return sent


def _spoken(message: Message, wire_ids: Mapping[str, str]) -> ChatMessage:
    calls = [WireCall(wire_ids[call.id], call.name, call.arguments) for call in message.tool_calls]
    return ChatMessage(message.role, message.content, calls, opaque=message.opaque)


def _result_text(call: StoredCall, result: Message | None, stubbed: bool, locale: Locale) -> str:
    words = load("orchestrator")
    if result is None:
        # The loop closes open calls before it asks; a provider refuses a call without a result.
        return words.text(locale, "calls.closed.interrupted")
    if not stubbed:
        return result.content
    key = "prompt.stub.failed" if result.is_error else "prompt.stub.done"
    return words.text(locale, key, tool=call.name, count=len(result.content))


def _wire_ids(messages: Sequence[Message]) -> dict[str, str]:
    """An id for the wire per call: the provider's own where it is new, else ours (FLD-002)."""
    given: dict[str, str] = {}
    taken: set[str] = set()
    for message in messages:
        for call in message.tool_calls:
            own = call.provider_id
            wire = own if own and len(own) <= _LONGEST_WIRE_ID and own not in taken else call.id
            given[call.id] = wire
            taken.add(wire)
    return given


def _stubbed(messages: Sequence[Message]) -> set[int]:
    """Ids of the tool messages that are told as stubs, in whole blocks from the oldest."""
    results = [message for message in messages if message.role == "tool"]
    blocks = max(0, len(results) - BLOCK) // BLOCK
    return {
        message.id
        for message in results[: blocks * BLOCK]
        if message.name not in KEPT_WHOLE and len(message.content) > SHORT_CHARS
    }

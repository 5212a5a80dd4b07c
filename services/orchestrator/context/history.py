"""The conversation as a provider gets it: wire ids, complete pairs, stubs for old results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.common.wording import Locale, load
from services.orchestrator.models.contract import ChatMessage, WireCall
from services.orchestrator.store.compactions import Compaction
from services.orchestrator.store.records import Message, StoredCall

# Results are stubbed so many at a time, and so many newest ones stay whole (AGT-199, 200).
BLOCK = 10
# Nothing is stubbed while the whole results have no more characters than this together: a block that
# becomes stubs changes what stands early in the prompt, so the provider reads all of it anew, and for
# little room that costs more than it saves.
WHOLE_CHARS = 40_000
# Neither stubbed (AGT-202) nor summarised (FLD-003).
KEPT_WHOLE = frozenset({"delegate"})
# A result this short costs no more than its stub.
SHORT_CHARS = 200
# Longer ids of providers are refused by some others.
_LONGEST_WIRE_ID = 64


def chat_messages(
    messages: Sequence[Message], locale: Locale, compaction: Compaction | None = None
) -> list[ChatMessage]:
    """The log as messages of a request.

    Each call has exactly one result, right after its message (TRN-138); details and context of
    messages are never sent.

    Args:
        messages: The whole log, whatever stands for a part of it.
        locale: Of the product's own words.
        compaction: Told in place of the messages it stands for (FLD-003).
    """
    wire_ids = _wire_ids(messages)
    stubbed = _stubbed(messages)
    results = {message.tool_call_id: message for message in messages if message.role == "tool"}
    sent: list[ChatMessage] = []
    if compaction is not None:
        sent.append(ChatMessage("user", compaction.told))
    for message in messages:
        if message.role == "tool":
            continue
        calls = message.tool_calls
        if compaction is not None and message.seq <= compaction.upto_seq:
            calls = [call for call in calls if call.name in KEPT_WHOLE]
            if not calls:
                continue
            # Without the rest of its message a provider could not check what it signed.
            sent.append(ChatMessage("assistant", "", _wire_calls(calls, wire_ids)))
        else:
            sent.append(
                ChatMessage(
                    message.role, message.content, _wire_calls(calls, wire_ids), opaque=message.opaque
                )
            )
        for call in calls:
            result = results.get(call.id)
            text = _result_text(call, result, result is not None and result.id in stubbed, locale)
            sent.append(ChatMessage("tool", text, tool_call_id=wire_ids[call.id]))
    return sent


def _wire_calls(calls: Sequence[StoredCall], wire_ids: Mapping[str, str]) -> Sequence[WireCall]:
    return [WireCall(wire_ids[call.id], call.name, call.arguments) for call in calls]


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
    """Ids of the tool messages that are told as stubs, in whole blocks from the oldest.

    Follows the log as it grew, so that a result which became a stub stays one.
    """
    results = [message for message in messages if message.role == "tool"]
    stubbed: set[int] = set()
    first = whole_chars = 0
    for count, newest in enumerate(results, 1):
        whole_chars += len(newest.content)
        while whole_chars > WHOLE_CHARS and count - first >= 2 * BLOCK:
            block = [message for message in results[first : first + BLOCK] if _can_be_a_stub(message)]
            stubbed |= {message.id for message in block}
            whole_chars -= sum(len(message.content) for message in block)
            first += BLOCK
    return stubbed


def _can_be_a_stub(result: Message) -> bool:
    return result.name not in KEPT_WHOLE and len(result.content) > SHORT_CHARS

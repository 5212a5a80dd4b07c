"""What of a conversation one summary may stand for, and how it is put before whoever writes it (FLD-003)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from services.common.fence import fenced
from services.common.wording import Catalogue, Locale, load
from services.orchestrator.agents.profile import Agent
from services.orchestrator.store.compactions import Compaction
from services.orchestrator.store.records import Message

# The newest turns, whatever they hold, are told word for word. What waits for a person or for a result
# is always among them, since a conversation begins no turn before that is settled.
WHOLE_TURNS = 3
# A summary may have this many characters; what a model writes beyond is cut.
SUMMARY_CHARS = 24_000


@dataclass(frozen=True, slots=True)
class OlderTurns:
    """Turns that a summary can stand for from now on, the summary before it included."""

    # Those that no summary stands for yet, with the number of each message's turn.
    messages: Sequence[tuple[int, Message]]
    before: Compaction | None
    upto_seq: int
    upto_turn: int


def older_turns(log: Sequence[Message], compaction: Compaction | None) -> OlderTurns | None:
    """All turns but the newest three; None when nothing is to be gained.

    Args:
        log: The whole log.
        compaction: What stands now.
    """
    upto_turn = sum(message.opens_turn for message in log) - WHOLE_TURNS
    if upto_turn < 1 or (compaction is not None and upto_turn <= compaction.upto_turn):
        return None
    told_from = compaction.upto_seq if compaction else 0
    number, older = 0, []
    for message in log:
        number += message.opens_turn
        if number > upto_turn:
            break
        if message.seq > told_from:
            older.append((number, message))
    return OlderTurns(older, compaction, older[-1][1].seq, upto_turn)


def told_summary(summary: str, older: OlderTurns, locale: Locale) -> str:
    """The message that stands for the older turns, in the system's voice around what a model wrote."""
    words = load("orchestrator")
    text = summary if len(summary) <= SUMMARY_CHARS else f"{summary[:SUMMARY_CHARS]}…"
    fence = fenced(text, words.text(locale, "prompt.compact.summary_label"))
    return words.text(locale, "prompt.compact.told", turns=older.upto_turn) + f"\n{fence}"


def transcript(older: OlderTurns, agent: Agent, locale: Locale, most_chars: int) -> str:
    """The older turns as the text that is to be summarised, fenced, at most about `most_chars` long.

    Long results are shortened before long arguments and words are; what remains too long loses its
    middle.
    """
    words = load("orchestrator")
    for ceilings in _CEILINGS:
        lines = "\n".join(_Reading(older, agent, locale, ceilings).lines())
        if len(lines) <= most_chars:
            break
    else:
        kept = most_chars // 2
        mark = words.text(locale, "prompt.compact.left_out", count=len(lines) - 2 * kept)
        lines = f"{lines[:kept]}\n{mark}\n{lines[-kept:]}"
    return fenced(lines, words.text(locale, "prompt.compact.label"))


@dataclass(frozen=True, slots=True)
class _Ceilings:
    """Most characters of one piece in a transcript."""

    result: int
    arguments: int
    words: int


_CEILINGS = (_Ceilings(2_000, 600, 12_000), _Ceilings(500, 200, 4_000), _Ceilings(120, 80, 1_000))


@dataclass(frozen=True, slots=True)
class _Reading:
    older: OlderTurns
    agent: Agent
    locale: Locale
    ceilings: _Ceilings

    def lines(self) -> Iterator[str]:
        if self.older.before is not None:
            yield self.older.before.told
        zone = ZoneInfo(self.agent.timezone)
        told = 0
        for number, message in self.older.messages:
            if number != told:
                told = number
                time = message.created_at.astimezone(zone)
                yield self._text("turn", number=number, time=f"{time:%Y-%m-%d %H:%M}")
            yield from self._of(message)

    def _of(self, message: Message) -> Iterator[str]:
        if message.role == "tool":
            key = "failed" if message.is_error else "result"
            yield self._text(key, tool=message.name or "?", text=_cut(message.content, self.ceilings.result))
            return
        if message.content.strip():
            yield self._text(message.author, text=_cut(message.content, self.ceilings.words))
        for call in message.tool_calls:
            yield self._text("call", tool=call.name, arguments=_cut(call.arguments, self.ceilings.arguments))

    def _text(self, key: str, **values: object) -> str:
        words: Catalogue = load("orchestrator")
        return words.text(self.locale, f"prompt.compact.{key}", **values)


def _cut(text: str, most: int) -> str:
    """The beginning and the end of a text that is too long."""
    if len(text) <= most:
        return text
    tail = most // 4
    return f"{text[: most - tail]} … {text[-tail:]}"

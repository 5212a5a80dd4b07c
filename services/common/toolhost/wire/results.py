"""Results on the wire and in Python: whole where they fit a message, in parts where not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never, cast, get_args

from crew.v1 import toolhost_pb2 as pb

from services.common.toolhost import exact_json
from services.common.toolhost.contract import Block, Fault, ImageBlock, Outcome, TextBlock, ToolResult
from services.common.toolhost.wire.calls import PART_BYTES, MalformedMessage, arguments_from_wire

# The most that all parts of one result may hold; more is a host gone wrong.
RESULT_BYTES = 64 * 1024**2
# The most that the JSON text of a result's details may hold.
DETAILS_BYTES = 4 * 1024**2

_OUTCOMES: dict[Outcome, pb.RunOutcome] = {
    outcome: cast("pb.RunOutcome", pb.RunOutcome.Value(f"RUN_OUTCOME_{outcome.upper()}"))
    for outcome in get_args(Outcome)
}
_FAULTS: dict[str, Fault] = {fault: fault for fault in get_args(Fault)}
_OUTCOME_NAMES = {number: outcome for outcome, number in _OUTCOMES.items()}


def result_to_wire(result: ToolResult) -> Iterator[pb.RunOutput]:
    """The messages of `result`: content in parts when it is large, then the result itself.

    Raises:
        ValueError: The result holds more than `RESULT_BYTES`, or its details more than
            `DETAILS_BYTES`.
    """
    details = exact_json.dumps(result.details)
    if len(details.encode()) > DETAILS_BYTES:
        raise ValueError(f"details over {DETAILS_BYTES} bytes")
    blocks = [_block_to_wire(block) for block in result.content]
    total = sum(block.ByteSize() for block in blocks)
    if total > RESULT_BYTES:
        raise ValueError(f"result over {RESULT_BYTES} bytes")
    if total + len(details.encode()) > PART_BYTES:
        for block in blocks:
            for part in _split(block):
                yield pb.RunOutput(part=part)
        blocks = []
    yield pb.RunOutput(result=_result_message(result, blocks, details))


def result_message(result: ToolResult) -> pb.RunResult:
    """The result as one message of any size, to be kept and not sent."""
    return _result_message(
        result, [_block_to_wire(block) for block in result.content], exact_json.dumps(result.details)
    )


class ResultAssembler:
    """Puts a result together again from the parts that came before it."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._open: list[str] = []
        self._bytes = 0

    def add(self, part: pb.ContentBlock) -> None:
        """Take one part.

        Raises:
            MalformedMessage: More than `RESULT_BYTES` came, or a picture in the middle of a text.
        """
        self._bytes += part.ByteSize()
        if self._bytes > RESULT_BYTES:
            raise MalformedMessage(f"a result over {RESULT_BYTES} bytes")
        block = _block_from_wire(part)
        if isinstance(block, ImageBlock):
            if self._open:
                raise MalformedMessage("a picture in the middle of a text")
            self._blocks.append(block)
            return
        self._open.append(block.text)
        if not part.continues:
            self._blocks.append(TextBlock("".join(self._open)))
            self._open.clear()

    def finish(self, message: pb.RunResult) -> ToolResult:
        """The whole result, with `message` as its end. An outcome left out is unknown.

        Raises:
            MalformedMessage: A text was left unfinished, or the details are not a JSON object.
        """
        for block in message.content:
            self.add(block)
        if self._open:
            raise MalformedMessage("a text that goes on after the result")
        return ToolResult(
            content=tuple(self._blocks),
            details=arguments_from_wire(message.details_json),
            is_error=message.is_error,
            outcome=_OUTCOME_NAMES.get(message.outcome, "unknown"),
            cost_usd=message.cost_usd if message.HasField("cost_usd") else None,
            unknown_cost_calls=message.unknown_cost_calls,
            terminate=message.terminate,
            new_tools=tuple(message.new_tools),
            refused=message.refused,
            absent=message.absent,
            fault=_FAULTS.get(message.fault),
        )


def _result_message(result: ToolResult, blocks: Sequence[pb.ContentBlock], details: str) -> pb.RunResult:
    return pb.RunResult(
        content=blocks,
        details_json=details,
        is_error=result.is_error,
        outcome=_OUTCOMES[result.outcome],
        cost_usd=result.cost_usd,
        unknown_cost_calls=result.unknown_cost_calls,
        terminate=result.terminate,
        new_tools=result.new_tools,
        refused=result.refused,
        absent=result.absent,
        fault=result.fault,
    )


def _block_to_wire(block: Block) -> pb.ContentBlock:
    match block:
        case TextBlock():
            return pb.ContentBlock(text=block.text)
        case ImageBlock():
            return pb.ContentBlock(image=pb.ImageReference(path=block.path, media_type=block.media_type))
        case _:
            assert_never(block)


def _block_from_wire(message: pb.ContentBlock) -> Block:
    if message.WhichOneof("block") == "image":
        return ImageBlock(path=message.image.path, media_type=message.image.media_type)
    return TextBlock(message.text)


def _split(block: pb.ContentBlock) -> Iterator[pb.ContentBlock]:
    if block.ByteSize() <= PART_BYTES:
        yield block
        return
    # Four bytes a character at most, so no piece can pass the limit.
    step = PART_BYTES // 4 - 64
    text = block.text
    for start in range(0, len(text), step):
        yield pb.ContentBlock(text=text[start : start + step], continues=start + step < len(text))

"""``crew send``: a message to an agent, and its reply as it comes."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

import grpc
from crew.v1 import crew_pb2, crew_pb2_grpc, events_pb2

from services.cli import orchestrator
from services.cli.texts import complain, language, texts
from services.common.rpc import DirectedChannel
from services.common.start import StartError

# A message that the orchestrator would refuse anyway is refused before it is sent.
MAX_CHARACTERS = 200_000
# Told apart by scripts: the turn waits for a person, the turn did not end well.
WAITING, NOT_DONE = 3, 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The message, and where it goes."""
    words = texts()
    parser.add_argument("text", help=words.text(language(), "cli.send.text"))
    parser.add_argument("--agent", default="", help=words.text(language(), "cli.send.agent"))
    parser.add_argument("--conversation", default="", help=words.text(language(), "cli.send.conversation"))
    parser.add_argument("--label", default="cli", help=words.text(language(), "cli.send.label"))
    parser.add_argument("--address", help=words.text(language(), "cli.send.address"))


def run(arguments: argparse.Namespace) -> int:
    """Send and print; returns 0 when the turn ended well.

    Raises:
        StartError: No crew is running in this home.
    """
    text = sys.stdin.read(MAX_CHARACTERS + 1) if arguments.text == "-" else arguments.text
    if len(text) > MAX_CHARACTERS:
        raise StartError("error.send.too_long", catalogue=texts(), limit=MAX_CHARACTERS)
    request = crew_pb2.SendRequest(
        text=text,
        agent_id=arguments.agent,
        conversation_id=arguments.conversation,
        label=arguments.label,
        channel="api",
    )
    try:
        return asyncio.run(_send(request, arguments.address))
    except grpc.aio.AioRpcError as error:
        complain(error.details() or error.code().name)
        return 1


async def _send(request: crew_pb2.SendRequest, address: str | None) -> int:
    code = NOT_DONE
    async with _channel(address) as channel:
        async for event in crew_pb2_grpc.CrewStub(channel).Send(request, metadata=orchestrator.spoken()):
            code = _show(event, code)
    return code


def _channel(address: str | None) -> DirectedChannel:
    """The public port with an API token, or the orchestrator of this home."""
    if address is not None:
        return DirectedChannel(address, token=os.environ.get("MY_AGENT_TOKEN", ""))
    return orchestrator.channel()


def _show(event: events_pb2.TurnEvent, code: int) -> int:
    """Print what a person wants to see of an event; returns the exit code it means."""
    words = texts()
    match event.WhichOneof("event"):
        case "text_delta":
            print(event.text_delta.text, end="", flush=True)
        case "tool_call":
            complain(words.text(language(), "cli.send.tool", name=event.tool_call.name))
        case "approval_required":
            complain(words.text(language(), "cli.send.approval", tool=event.approval_required.approval.tool))
            return WAITING
        case "queued":
            complain(words.text(language(), "cli.send.queued"))
            return 0
        case "done":
            print(flush=True)
            return 0
        case "halted":
            complain(words.text(language(), "cli.send.halted", reason=event.halted.reason))
            return NOT_DONE
        case "error":
            complain(event.error.message)
            return NOT_DONE
    return code

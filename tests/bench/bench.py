"""What every measure works with: the crew, the model, and how a turn is timed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import grpc.aio
from crew.v1 import conversations_pb2, conversations_pb2_grpc, turns_pb2, turns_pb2_grpc

from tests.bench.figures import percentile
from tests.bench.model import FILES, file_name
from tests.fixtures.api_client import ApiClient
from tests.fixtures.native_crew import NativeCrew


@dataclass(frozen=True, slots=True)
class Timed:
    """One turn as its sender saw it, in milliseconds from sending."""

    first: float
    last: float
    # The text that was streamed.
    text: str


class Bench:
    """A crew of processes and a model server beside it.

    Args:
        crew: Not started.
        model_url: Of the model server; ends in ``/v1``.
    """

    def __init__(self, crew: NativeCrew, model_url: str) -> None:
        self.crew = crew
        self._model = ApiClient(urlsplit(model_url).port or 80)
        self._running = False
        self._model_times: dict[str, Timed] = {}

    def start(self) -> float:
        """Start the crew; returns the seconds until it was healthy."""
        self._running = True
        return self.crew.start()

    def stop(self) -> float:
        """Stop the crew; returns the seconds until it had ended."""
        self._running = False
        return self.crew.stop()

    def ensure_running(self) -> None:
        """Start the crew unless it runs, and put the files of the scenarios into its workspace."""
        if not self._running:
            self.start()
        for number in range(FILES):
            line = f"Line of file {number}, which a tool reads while the clock runs.\n"
            (self.crew.workspace / file_name(number)).write_text((line * 20)[:1023] + "\n")

    async def open(self) -> str:
        """A new conversation's id."""
        opened = await self.crew.api.post("/api/conversations")
        return str(opened["id"])

    async def over_http(self, conversation_id: str, text: str) -> Timed:
        """Send a message through the gateway and read its turn to the end."""
        began = time.perf_counter()
        first = last = 0.0
        said: list[str] = []
        path = f"/api/conversations/{conversation_id}/messages"
        async with aclosing(self.crew.api.stream("POST", path, {"text": text})) as events:
            async for event in events:
                last = _since(began)
                first = first or last
                if event.name == "text_delta":
                    said.append(event.data["text"])
                kind = event.name
        assert kind == "done", f"the turn ended with {kind}"
        return Timed(first, last, "".join(said))

    async def model_alone(self, scenario: str) -> Timed:
        """What the model server itself takes for a reply: the median of 30."""
        if scenario not in self._model_times:
            body = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": scenario}]}
            taken = [await self._ask_model(body) for _ in range(30)]
            self._model_times[scenario] = Timed(
                percentile((each.first for each in taken), 0.5),
                percentile((each.last for each in taken), 0.5),
                "",
            )
        return self._model_times[scenario]

    async def _ask_model(self, body: dict[str, object]) -> Timed:
        began = time.perf_counter()
        first = 0.0
        async with aclosing(self._model.stream("POST", "/v1/chat/completions", body)) as events:
            async for _ in events:
                first = first or _since(began)
        return Timed(first, _since(began), "")


class GrpcSender:
    """Sends over gRPC, as the command line does."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._conversations = conversations_pb2_grpc.ConversationsStub(channel)
        self._turns = turns_pb2_grpc.TurnsStub(channel)

    async def open(self) -> str:
        """A new conversation's id."""
        opened = await self._conversations.Create(conversations_pb2.CreateConversationRequest())
        return str(opened.id)

    async def send_behind(self, conversation_id: str, text: str, following: str) -> bool:
        """Send a second message as soon as the first one's turn shows itself; whether it had to wait."""
        first = self._turns.Send(turns_pb2.SendMessageRequest(conversation_id=conversation_id, text=text))
        waits = False
        async for event in first:
            if event.seq == 1:
                request = turns_pb2.SendMessageRequest(conversation_id=conversation_id, text=following)
                async for answer in self._turns.Send(request):
                    waits = answer.HasField("queued")
        return waits

    async def send(self, conversation_id: str, text: str) -> Timed:
        """Send a message and read its turn to the end."""
        began = time.perf_counter()
        first = last = 0.0
        said: list[str] = []
        request = turns_pb2.SendMessageRequest(conversation_id=conversation_id, text=text)
        async for event in self._turns.Send(request):
            last = _since(began)
            first = first or last
            said.append(event.text_delta.text)
            kind = event.WhichOneof("event")
        assert kind == "done", f"the turn ended with {kind}"
        return Timed(first, last, "".join(said))

    async def steer(self, conversation_id: str, text: str) -> bool:
        """Say something to the running turn; whether there was one."""
        request = turns_pb2.SendMessageRequest(conversation_id=conversation_id, text=f"/steer {text}")
        kinds = [event.WhichOneof("event") async for event in self._turns.Send(request)]
        return kinds == ["queued"]


@asynccontextmanager
async def grpc_sender(crew: NativeCrew) -> AsyncIterator[GrpcSender]:
    """A sender over the orchestrator's own socket."""
    async with crew.channel() as channel:
        yield GrpcSender(channel)


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000

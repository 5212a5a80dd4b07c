"""What the cases do over HTTP, as plainly as it can be done."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.fixtures.crew import Crew, running_crew, until
from tests.fixtures.fake_orchestrator import FakeOrchestrator
from tests.fixtures.gateway import gateway_before
from tests.fixtures.model_server import ModelServer
from tests.fixtures.postgres import ScratchDatabase

Frames = list[dict[str, Any]]


class Web:
    """A caller of one crew's gateway."""

    def __init__(self, crew: Crew, http: httpx.AsyncClient) -> None:
        self.crew = crew
        self.http = http

    async def inbound(self, text: str, status: int = 200, **fields: Any) -> dict[str, Any]:
        """POST /api/inbound."""
        answer = await self.http.post("/api/inbound", json={"text": text, **fields})
        assert answer.status_code == status, answer.text
        return answer.json()

    async def open(self, **changes: Any) -> str:
        """A new conversation with these settings."""
        conversation_id = (await self.http.post("/api/conversations", json={})).json()["id"]
        if changes:
            await self.patch(conversation_id, **changes)
        return conversation_id

    async def patch(self, conversation_id: str, status: int = 200, **changes: Any) -> dict[str, Any]:
        """PATCH of a conversation."""
        answer = await self.http.patch(f"/api/conversations/{conversation_id}", json=changes)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def send(self, conversation_id: str, text: str, status: int = 200) -> Frames:
        """Send a message and read its stream to the end; no frames when it is refused."""
        answer = await self.http.post(f"/api/conversations/{conversation_id}/messages", json={"text": text})
        assert answer.status_code == status, answer.text
        return frames_of(answer.text)

    async def get(self, conversation_id: str) -> dict[str, Any]:
        """The conversation."""
        return (await self.http.get(f"/api/conversations/{conversation_id}")).json()

    async def results(self, conversation_id: str) -> list[str]:
        """The texts of the tool messages of a conversation."""
        messages = (await self.get(conversation_id))["messages"]
        return [message["content"] for message in messages if message["role"] == "tool"]

    async def runs(self, conversation_id: str) -> list[dict[str, Any]]:
        """Its runs, newest first."""
        query = {"conversation_id": conversation_id}
        return (await self.http.get("/api/activity/runs", params=query)).json()

    async def pending(self, conversation_id: str) -> dict[str, Any]:
        """What waits for a person in a conversation."""
        approval = (await self.get(conversation_id))["pending_approval"]
        assert approval is not None
        return approval

    async def decide(self, approval: dict[str, Any], status: int = 200, **body: Any) -> Frames:
        """POST of a decision; no frames when it is refused."""
        path = f"/api/conversations/{approval['conversation_id']}/approvals/{approval['id']}"
        answer = await self.http.post(path, json=body)
        assert answer.status_code == status, answer.text
        return frames_of(answer.text)

    async def rests(self, conversation_id: str, runs: int = 1) -> None:
        """Wait until so many runs are there and none goes on."""

        async def over() -> bool:
            found = await self.runs(conversation_id)
            return len(found) == runs and all(run["finished_at"] for run in found)

        await until(over, seconds=60)


def frames_of(body: str) -> Frames:
    """The data of the frames of a stream."""
    return [json.loads(line[6:]) for line in body.split("\n") if line.startswith("data: ")]


def of_kind(frames: Frames, kind: str) -> Frames:
    """The frames of one kind."""
    return [frame for frame in frames if frame["type"] == kind]


@asynccontextmanager
async def web_of(database: ScratchDatabase, **options: Any) -> AsyncIterator[Web]:
    """A crew with a gateway before it."""
    async with (
        running_crew(database, **options) as crew,
        gateway_before(
            crew.environ["MY_AGENT_ORCHESTRATOR_LISTEN"], crew.folder / "secrets", FakeOrchestrator()
        ) as gateway,
    ):
        gateway.http.timeout = httpx.Timeout(60)
        yield Web(crew, gateway.http)


def routed(model_server: ModelServer, *models: str) -> dict[str, str]:
    """The variables of a crew whose models are the scripted server's."""
    routes = ",".join(f"openai:{model}" for model in models or ("test",))
    return {"MY_AGENT_ROUTES": routes, "OPENAI_BASE_URL": model_server.base_url}

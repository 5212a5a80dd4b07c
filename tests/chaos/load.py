"""People who send, decide and stop through the HTTP API while everything is being killed."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.fixtures.api_client import ApiClient, Broken, Refused

PEOPLE = 8
# Each person's conversations: the first asks for every change, the others are autonomous.
CONVERSATIONS = 3
_KINDS = ("plain", "slow", "read", "write", "append", "append")
_AGAIN_SECONDS = 0.15


@dataclass
class Sent:
    """One message, by the token in it."""

    token: str
    kind: str
    conversation_id: str
    # The API answered 200 for it.
    accepted: bool = False
    # How often it was sent. What a stop handed back may be sent again under its name (GTW-082).
    attempts: int = 0
    # Handed back by a stop; "maybe": the answer of a stop that could have was lost.
    cleared: Literal["no", "maybe", "yes"] = "no"


@dataclass
class Record:
    """What the people know when all is over."""

    sent: dict[str, Sent] = field(default_factory=dict)
    # By approval id: what a 200 said that was decided.
    decided: dict[str, bool] = field(default_factory=dict)
    stops: int = 0
    # Answers that nothing of this can explain.
    unexpected: list[str] = field(default_factory=list)


class Load:
    """All people together.

    Args:
        api: Of the crew.
        seed: Of what they do.
    """

    def __init__(self, api: ApiClient, seed: int) -> None:
        self.record = Record()
        self._api = api
        self._seed = seed
        self._ending = False
        self._people: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Open the conversations and begin to send."""
        for number in range(PEOPLE):
            opened = [await self._open(autonomous=place > 0) for place in range(CONVERSATIONS)]
            draw = random.Random(f"{self._seed}/{number}")
            self._people.append(asyncio.create_task(self._person(number, draw, opened)))

    async def end(self) -> None:
        """Send nothing new, and return when every sent message is accepted and its turn has ended."""
        self._ending = True
        await asyncio.gather(*self._people)

    async def _open(self, *, autonomous: bool) -> str:
        opened = await self._api.post("/api/conversations")
        if autonomous:
            await self._api.patch(f"/api/conversations/{opened['id']}", {"autonomous": True})
        return str(opened["id"])

    async def _person(self, number: int, draw: random.Random, opened: list[str]) -> None:
        count = 0
        while not self._ending:
            conversation_id = draw.choice(opened)
            batch = []
            # Some messages follow at once and wait for the turn of the first.
            for _ in range(draw.choice((1, 1, 1, 2, 3))):
                count += 1
                message = Sent(f"p{number}n{count}", draw.choice(_KINDS), conversation_id)
                self.record.sent[message.token] = message
                batch.append(asyncio.create_task(self._send(message, draw)))
                await asyncio.sleep(draw.uniform(0.01, 0.1))
            if draw.random() < 0.12:
                await asyncio.sleep(draw.uniform(0.05, 0.4))
                await self._stop(conversation_id)
            await asyncio.gather(*batch)
            await self._settle(conversation_id, draw)

    async def _send(self, message: Sent, draw: random.Random) -> None:
        """Send until it is accepted, under one name, and watch until the stream ends or breaks."""
        path = f"/api/conversations/{message.conversation_id}/messages"
        text = f"Please.\norder {message.kind} {message.token}"
        while not message.accepted:
            message.attempts += 1
            try:
                body = {"text": text, "request_id": message.token}
                async with aclosing(self._api.stream("POST", path, body)) as events:
                    async for _ in events:
                        message.accepted = True
            except Broken:
                await asyncio.sleep(_AGAIN_SECONDS)
            except Refused as refused:
                if refused.status == 409:
                    await self._decide(message.conversation_id, draw)
                elif refused.status not in {429, 503}:
                    self.record.unexpected.append(f"send: {refused}")
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _stop(self, conversation_id: str) -> None:
        self.record.stops += 1
        among = [each for each in self.record.sent.values() if each.conversation_id == conversation_id]
        try:
            reply = await self._api.post(f"/api/conversations/{conversation_id}/stop")
        except (Broken, Refused) as error:
            if isinstance(error, Refused) and error.status != 503:
                self.record.unexpected.append(f"stop: {error}")
            # It may have emptied the queue and died before saying so.
            for message in among:
                if message.cleared == "no":
                    message.cleared = "maybe"
            return
        cleared = {text.split("order", 1)[-1].splitlines()[0].split()[-1] for text in reply["cleared"]}
        for message in among:
            if message.token in cleared:
                message.cleared = "yes"

    async def _settle(self, conversation_id: str, draw: random.Random) -> None:
        """Decide what waits, until the conversation is quiet."""
        while True:
            try:
                found = await self._api.get(f"/api/conversations/{conversation_id}")
            except (Broken, Refused) as error:
                self._note("get", error)
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            if found["pending_approval"]:
                await self._settle_approval(found["pending_approval"], draw)
            elif not found["running"] and not found["queued"]:
                return
            else:
                await asyncio.sleep(0.05)

    async def _decide(self, conversation_id: str, draw: random.Random) -> None:
        try:
            found = await self._api.get(f"/api/conversations/{conversation_id}")
        except (Broken, Refused) as error:
            self._note("get", error)
            return
        if found["pending_approval"]:
            await self._settle_approval(found["pending_approval"], draw)

    async def _settle_approval(self, approval: dict[str, Any], draw: random.Random) -> None:
        approve = draw.random() < 0.8
        path = f"/api/conversations/{approval['conversation_id']}/approvals/{approval['id']}"
        try:
            async with aclosing(self._api.stream("POST", path, {"approve": approve})) as events:
                async for _ in events:
                    self.record.decided[approval["id"]] = approve
        except Broken:
            await asyncio.sleep(_AGAIN_SECONDS)
        except Refused as refused:
            if refused.status != 409:
                self._note("decide", refused)
            await asyncio.sleep(_AGAIN_SECONDS)

    def _note(self, what: str, error: Broken | Refused) -> None:
        if isinstance(error, Refused) and error.status != 503:
            self.record.unexpected.append(f"{what}: {error}")

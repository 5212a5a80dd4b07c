"""What was said before: search over it, and branches off it."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .shapes import shape
from .state import State


class Past:
    """Routes over the stored conversations."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.searches: list[str] = []

    async def search(self, request: Request) -> Response:
        wanted = request.query_params["q"].casefold()
        self.searches.append(wanted)
        hits: list[dict[str, Any]] = []
        for talk in self.state.talks.values():
            for message in talk.messages:
                if message["role"] == "tool" or wanted not in message["content"].casefold():
                    continue
                hits.append(
                    shape(
                        "MessageHit",
                        conversation_id=talk.head["id"],
                        title=talk.head["title"],
                        message_id=message["id"],
                        agent_id=talk.head["agent_id"],
                        role=message["role"],
                        snippet=message["content"][:160],
                        created_at=message["created_at"],
                    )
                )
        return JSONResponse(hits[:20])

    async def fork(self, request: Request) -> Response:
        talk = self.state.talks.get(request.path_params["id"])
        cut = (await request.json())["before_message_id"]
        found = next((one for one in talk.messages if one["id"] == cut), None) if talk else None
        if talk is None or found is None:
            return JSONResponse({"detail": "There is no such message."}, 404)
        branch = self.state.open_talk(f"{talk.head['title']} (fork)")
        branch.head["forked_from"] = talk.head["id"]
        for message in talk.messages:
            if message["seq"] < found["seq"]:
                self.state.add_message(branch, message["role"], message["content"])
        self.state.tell_activity("conversation", conversation_id=branch.head["id"])
        reply = shape("ForkConversationReply", conversation=self.state.view(branch), text=found["content"])
        return JSONResponse(reply, 201)

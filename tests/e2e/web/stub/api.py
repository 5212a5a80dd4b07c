"""The HTTP side of the scripted crew: the routes that the page uses, with the real status codes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from .edge import Edge, refusal
from .house import House
from .past import Past
from .performer import Performer
from .plans import Plan, Text, plan
from .records import Records
from .shapes import event, frame, shape
from .state import State, Talk, Turn, stamp


class Api:
    """Routes over a State; the switches are set by tests."""

    def __init__(self, static: Path) -> None:
        self.static = static
        self.state = State()
        self.plans: list[Plan] = []
        self.refuse: dict[str, list[tuple[int, str]]] = {}
        self.down = ""
        self.services = [
            shape("ServiceHealth", name="orchestrator", reachable=True, since=stamp()),
            shape("ServiceHealth", name="tools", reachable=True, since=stamp()),
        ]
        self.password: str | None = None
        self.logged_in = False
        self.setup_token = ""
        self.house = House()
        self.past = Past(self.state)
        self.records = Records()
        # Answers of paths with such an end wait until the test sets the event.
        self.slow: dict[str, asyncio.Event] = {}
        self.decisions: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.open_streams = 0
        self.slow_decision = asyncio.Event()
        self.slow_decision.set()

    def app(self) -> Starlette:
        """The whole site."""
        conversation = "/api/conversations/{id}"
        routes = [
            Route("/api/health", self.health),
            Route("/api/auth/session", self.session),
            Route("/api/auth/login", self.login, methods=["POST"]),
            Route("/api/auth/setup", self.set_up, methods=["POST"]),
            Route("/api/auth/logout", self.logout, methods=["POST"]),
            Route("/api/auth/sessions", self.end_sessions, methods=["DELETE"]),
            Route("/api/auth/tokens", self.tokens, methods=["GET", "POST"]),
            Route("/api/auth/tokens/{id}", self.delete_token, methods=["DELETE"]),
            Route("/api/conversations", self.conversations, methods=["GET", "POST"]),
            Route(conversation, self.conversation, methods=["GET", "PATCH", "DELETE"]),
            Route(f"{conversation}/fork", self._late("past", "fork"), methods=["POST"]),
            Route("/api/messages/search", self._late("past", "search")),
            Route(f"{conversation}/messages", self.send, methods=["POST"]),
            Route(f"{conversation}/turn", self.watch),
            Route(f"{conversation}/stop", self.stop, methods=["POST"]),
            Route(f"{conversation}/approvals/{{aid}}", self.decide, methods=["POST"]),
            Route(f"{conversation}/approvals/{{aid}}/answer", self.answer, methods=["POST"]),
            Route("/api/approvals", self.approvals),
            Route("/api/approvals/waiting", self.waiting),
            Route("/api/activity/runs", self.runs),
            Route("/api/activity/runs/{id}", self.run),
            Route("/api/activity/stream", self.activity),
            Route("/api/audit", self._late("records", "audit")),
            Route("/api/stats", self._late("records", "spent")),
            Route("/api/stats/tools", self._late("records", "tools")),
            Route("/api/activity/runs/{id}/trajectory", self._late("records", "trajectory")),
            Route("/api/notifications", self._late("records", "list_notifications")),
            Route("/api/notifications/read", self._late("records", "read_notifications"), methods=["POST"]),
            Route(
                "/api/notifications/confirm",
                self._late("records", "confirm_notifications"),
                methods=["POST"],
            ),
            Route("/api/budgets", self._late("records", "list_budgets")),
            Route("/api/budgets/go-on", self._late("records", "go_on_today"), methods=["POST"]),
            Route("/api/agents", self._late("house", "agents")),
            Route("/api/agents/{id}", self._late("house", "agent")),
            Route("/api/agents/{id}/prompt", self._late("house", "prompt")),
            Route("/api/tools", self._late("house", "tools")),
            Route("/api/connections", self._late("house", "connections")),
            Route("/api/settings", self._late("house", "settings")),
            Mount("/", StaticFiles(directory=self.static, html=True)),
        ]
        app = Starlette(routes=routes)
        app.add_middleware(Edge, api=self)
        return app

    def _late(self, part: str, name: str) -> Callable[[Request], Awaitable[Response]]:
        """A route of a part that `reset` makes anew."""

        async def answer(request: Request) -> Response:
            handler: Callable[[Request], Awaitable[Response]] = getattr(getattr(self, part), name)
            return await handler(request)

        return answer

    # Who is there.

    async def health(self, _: Request) -> Response:
        status = "ok" if all(one["reachable"] for one in self.services) else "degraded"
        return JSONResponse(shape("HealthReply", status=status, version="0.1.0", services=self.services))

    async def session(self, _: Request) -> Response:
        owner = self.password is not None or self.setup_token != ""
        return JSONResponse(
            {
                "mode": "owner" if owner else "none",
                "authenticated": self.logged_in or not owner,
                "kind": ("session" if self.logged_in else None) if owner else "local",
                "scopes": ["read", "chat", "approve", "files", "manage"],
                "expires_at": "2030-01-01T00:00:00.000Z" if owner else None,
            }
        )

    async def login(self, request: Request) -> Response:
        if (await request.json()).get("password") != self.password:
            return refusal(401, "That is not the password.")
        self.logged_in = True
        return Response(status_code=204)

    async def set_up(self, request: Request) -> Response:
        body = await request.json()
        if not self.setup_token or body.get("setup_token") != self.setup_token:
            return refusal(401, "This setup token is not valid, or was used before.")
        self.password, self.setup_token, self.logged_in = body["password"], "", True
        return Response(status_code=204)

    async def logout(self, _: Request) -> Response:
        self.logged_in = False
        return Response(status_code=204)

    async def end_sessions(self, _: Request) -> Response:
        return Response(status_code=204)

    async def tokens(self, request: Request) -> Response:
        if request.method == "GET":
            return JSONResponse(self.state.tokens)
        body = await request.json()
        info = shape(
            "TokenInfo",
            id=f"tok-{self.state.number()}",
            name=body["name"],
            scopes=body["scopes"],
            created_at=stamp(),
        )
        self.state.tokens.append(info)
        made = {key: value for key, value in info.items() if key != "last_used_at"}
        return JSONResponse(shape("CreatedToken", **made, token="crew_8fK2x9qLw0ZrT4vB"), 201)

    async def delete_token(self, request: Request) -> Response:
        wanted = request.path_params["id"]
        self.state.tokens = [token for token in self.state.tokens if token["id"] != wanted]
        return Response(status_code=204)

    # Conversations.

    async def conversations(self, request: Request) -> Response:
        if request.method == "POST":
            talk = self.state.open_talk()
            self.state.tell_activity("conversation", conversation_id=talk.head["id"])
            return JSONResponse(self.state.view(talk), 201)
        talks = sorted(self.state.talks.values(), key=lambda talk: talk.head["updated_at"], reverse=True)
        return JSONResponse([self.state.view(talk) for talk in talks])

    def _talk(self, request: Request) -> Talk | None:
        return self.state.talks.get(request.path_params["id"])

    async def conversation(self, request: Request) -> Response:
        talk = self._talk(request)
        if talk is None:
            return refusal(404, "There is no such conversation.")
        if request.method == "DELETE":
            del self.state.talks[talk.head["id"]]
            self.state.tell_activity("conversation", conversation_id=talk.head["id"], removed=True)
            return Response(status_code=204)
        if request.method == "PATCH":
            body = await request.json()
            talk.head.update(body)
            self.state.tell_activity("conversation", conversation_id=talk.head["id"])
            return JSONResponse(self.state.view(talk))
        limit = int(request.query_params.get("limit", 50))
        before = int(request.query_params.get("before_seq", len(talk.messages) + 1))
        older = [message for message in talk.messages if message["seq"] < before]
        return JSONResponse(self.state.view(talk, older[-limit:], len(older) > limit))

    async def send(self, request: Request) -> Response:
        talk = self._talk(request)
        if talk is None:
            return refusal(404, "There is no such conversation.")
        body = await request.json()
        if talk.approval is not None:
            return refusal(409, "This conversation waits for a decision.")
        self.sent.append(body)
        if body["request_id"] in talk.request_ids and talk.turn is not None:
            return self._stream(talk, talk.turn)
        talk.request_ids.add(body["request_id"])
        if talk.turn is not None:
            if len(talk.queued) >= 20:
                return refusal(429, "Twenty messages wait already.")
            kind = "steer" if body["text"].startswith("/steer ") else "follow_up"
            item = shape(
                "QueuedMessage",
                item_id=self.state.number(),
                kind=kind,
                position=len(talk.queued) + 1,
                text=body["text"],
            )
            talk.queued.append(item)
            told = event("queued", item_id=item["item_id"], kind=kind, position=item["position"])
            return _sse(_once(f"{talk.turn.run_id}:0", told))
        if not talk.head["title"]:
            talk.head["title"] = body["text"][:60]
        self.state.add_message(talk, "user", body["text"])
        return self._stream(talk, self._begin(talk))

    def _begin(self, talk: Talk) -> Turn:
        chosen = self.plans.pop(0) if self.plans else plan(Text("Good. What next?"))
        turn = Performer(self.state, talk, chosen).start()
        assert turn.task is not None
        turn.task.add_done_callback(lambda _: self._drain(talk))
        return turn

    def _drain(self, talk: Talk) -> None:
        if talk.turn is not None or talk.approval is not None or not talk.queued:
            return
        text = "\n\n".join(item["text"] for item in talk.queued)
        talk.queued = []
        self.state.add_message(talk, "user", text)
        self._begin(talk)

    def _stream(self, talk: Talk, turn: Turn) -> Response:
        async def frames() -> AsyncIterator[str]:
            sent = 0
            while not (turn.over and sent == len(turn.events)):
                async with self.state.changed:
                    while sent == len(turn.events) and not turn.over:
                        await self.state.changed.wait()
                for told in turn.events[sent:]:
                    sent += 1
                    yield _frame(f"{turn.run_id}:{sent}", told)

        return _sse(frames())

    async def watch(self, request: Request) -> Response:
        talk = self._talk(request)
        if talk is None:
            return refusal(404, "There is no such conversation.")
        if talk.turn is None:
            return Response(status_code=204)
        return self._stream(talk, talk.turn)

    async def stop(self, request: Request) -> Response:
        talk = self._talk(request)
        if talk is None:
            return refusal(404, "There is no such conversation.")
        cleared = [item["text"] for item in talk.queued]
        talk.queued = []
        turn = talk.turn
        if turn is not None and turn.task is not None:
            turn.task.cancel()
            await asyncio.wait([turn.task])
            await self.state.end_turn(talk)
        return JSONResponse(shape("StopReply", cleared=cleared, cancelled=turn is not None))

    async def decide(self, request: Request) -> Response:
        return await self._close(request, question=False)

    async def answer(self, request: Request) -> Response:
        return await self._close(request, question=True)

    async def _close(self, request: Request, question: bool) -> Response:
        talk = self._talk(request)
        body = await request.json()
        self.decisions.append(body)
        await self.slow_decision.wait()
        if talk is None:
            return refusal(404, "There is no such conversation.")
        approval = talk.approval
        if approval is None or approval["id"] != request.path_params["aid"] or talk.decided is None:
            return refusal(409, "This request was decided already.")
        if (approval["kind"] == "question") != question:
            return refusal(409, "A question is answered, an approval is decided.")
        approve = True if question else bool(body["approve"])
        if body.get("always") and approve:
            talk.head["auto_approve"] = [*talk.head["auto_approve"], approval["tool"]]
        status = "answered" if question else ("approved" if approve else "denied")
        approval.update(status=status, decided_at=stamp(), decided_by="owner", answer=body.get("answer"))
        self.state.decided.insert(0, approval)
        turn = Turn(approval["run_id"])
        talk.turn = turn
        talk.approval = None
        # The paused performer goes on; its task is the new turn's too, so that Stop reaches it.
        turn.task = talk.task
        talk.decided.set_result((approve, body.get("answer")))
        return self._stream(talk, turn)

    async def approvals(self, request: Request) -> Response:
        return JSONResponse(self.state.decided[: int(request.query_params.get("limit", 50))])

    async def waiting(self, _: Request) -> Response:
        found = [talk.approval for talk in self.state.talks.values() if talk.approval is not None]
        return JSONResponse(sorted(found, key=lambda one: one["created_at"]))

    # Activity.

    async def runs(self, request: Request) -> Response:
        query = request.query_params
        found = [
            run
            for run in self.state.runs.values()
            if query.get("conversation_id") in (None, run["conversation_id"])
            and query.get("agent_id") in (None, run["agent_id"])
        ]
        found.sort(key=lambda run: run["started_at"], reverse=True)
        return JSONResponse(found[: int(query.get("limit", 100))])

    async def run(self, request: Request) -> Response:
        found = self.state.runs.get(request.path_params["id"])
        return JSONResponse(found) if found else refusal(404, "There is no such run.")

    async def activity(self, _: Request) -> Response:
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        state = self.state
        state.watchers.append(queue)
        live = [run for run in state.runs.values() if run["status"] in ("running", "awaiting_approval")]

        async def frames() -> AsyncIterator[str]:
            self.open_streams += 1
            try:
                yield _frame("0", frame("snapshot", runs=live))
                while (told := await queue.get()) is not None:
                    yield _frame("0", told)
            finally:
                self.open_streams -= 1
                state.watchers.remove(queue)

        return _sse(frames())


def _frame(number: str, data: dict[str, Any]) -> str:
    return f"id: {number}\nevent: {data['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


async def _once(number: str, data: dict[str, Any]) -> AsyncIterator[str]:
    yield _frame(number, data)


def _sse(frames: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(frames, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

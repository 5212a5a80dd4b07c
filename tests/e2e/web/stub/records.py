"""The books of the scripted crew: the audit trail, what tools did, what was spent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .shapes import shape
from .state import stamp


class Records:
    """Routes of the books; tests write the rows."""

    def __init__(self) -> None:
        self.trail: list[dict[str, Any]] = []
        self.asked: list[dict[str, str]] = []
        self.uses: list[dict[str, Any]] = []
        self.faults: list[dict[str, Any]] = []
        self.stats: dict[str, Any] = {}
        self.budgets: list[dict[str, Any]] = []
        self.go_on: bool | None = None
        self.notifications: list[dict[str, Any]] = []
        self.confirmed: list[str] = []

    def call(self, tool: str, **values: Any) -> None:
        """One line of the trail, newest first."""
        number = len(self.trail) + 1
        values.setdefault("arguments_short", '{"path": "notes.md"}')
        values.setdefault("allowed_by", "approved")
        values.setdefault("result", "done")
        entry = shape(
            "AuditEntry",
            id=f"entry-{number}",
            at=stamp(datetime.now(UTC) - timedelta(minutes=len(self.trail))),
            agent_id="default",
            conversation_id="conv-1",
            run_id="run-1",
            call_id=f"call-{number}",
            tool=tool,
            arguments_sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
            bytes_in=42,
            **values,
        )
        self.trail.append(entry)

    async def audit(self, request: Request) -> Response:
        query = request.query_params
        self.asked.append(dict(query))
        found = [
            entry
            for entry in self.trail
            if query.get("tool", entry["tool"]) == entry["tool"]
            and query.get("text", "") in (entry["command"] or entry["arguments_short"])
            and (query.get("reads") == "true" or query.get("tool") or entry["effect"] != "read")
        ]
        if before := query.get("before"):
            at = [entry["id"] for entry in found].index(before)
            found = found[at + 1 :]
        return JSONResponse(found[: int(query.get("limit", 100))])

    async def tools(self, request: Request) -> Response:
        days = int(request.query_params.get("days", 7))
        return JSONResponse(shape("ToolStatsReply", days=days, uses=self.uses, descriptions=self.faults))

    async def spent(self, _: Request) -> Response:
        return JSONResponse(shape("StatsReply", timezone="UTC", **self.stats))

    async def list_budgets(self, _: Request) -> Response:
        return JSONResponse(self._budgets())

    async def go_on_today(self, request: Request) -> Response:
        self.go_on = bool((await request.json())["go_on"])
        return JSONResponse(self._budgets())

    def _budgets(self) -> dict[str, Any]:
        rows = [{**row, "go_on_today": self.go_on} for row in self.budgets]
        return shape("BudgetsReply", budgets=rows, day="2026-03-01", timezone="UTC")

    def told(self, text: str, kind: str = "trouble", **values: Any) -> dict[str, Any]:
        """Something the owner is told; the newest of all."""
        number = len(self.notifications) + 1
        values.setdefault("created_at", stamp())
        values.setdefault("delivery", "waiting")
        one = shape("Notification", id=f"note-{number}", kind=kind, text=text, **values)
        self.notifications.insert(0, one)
        return one

    def unread(self) -> int:
        """How many nobody has read."""
        return sum(one["read_at"] is None for one in self.notifications)

    async def list_notifications(self, _: Request) -> Response:
        return JSONResponse(
            shape("ListNotificationsReply", notifications=self.notifications, unread=self.unread())
        )

    async def read_notifications(self, request: Request) -> Response:
        ids = (await request.json())["ids"]
        for one in self.notifications:
            if not ids or one["id"] in ids:
                one["read_at"] = one["read_at"] or stamp()
        return JSONResponse(shape("MarkNotificationsReadReply", unread=self.unread()))

    async def confirm_notifications(self, request: Request) -> Response:
        body = await request.json()
        assert body["surface"] == "web"
        self.confirmed.extend(body["ids"])
        return JSONResponse(shape("ConfirmNotificationsReply", confirmed=len(body["ids"])))

    async def trajectory(self, request: Request) -> Response:
        query = request.query_params
        words = "whole" if query.get("full") == "1" else "cut"
        return Response(f"{query['format']} {words}", media_type="text/plain")

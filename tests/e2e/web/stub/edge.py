"""Headers of every answer of the scripted crew, and the refusals and delays that a test has asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from .api import Api

# Stricter than the gateway's: with it, an inline style in the markup would not apply.
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' http: https:; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'self'"
)


def refusal(status: int, sentence: str) -> JSONResponse:
    """A refusal as the gateway writes it."""
    return JSONResponse({"detail": sentence}, status)


class Edge:
    """Stands before all routes."""

    def __init__(self, app: Any, api: Api) -> None:
        self.app = app
        self.api = api

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        refused: JSONResponse | None = None
        for suffix, waiting in self.api.refuse.items():
            if path.endswith(suffix) and waiting:
                refused = refusal(*waiting.pop(0))
                break
        if self.api.down and path.startswith("/api/"):
            refused = refusal(503, self.api.down)
        for suffix, released in self.api.slow.items():
            if path.endswith(suffix):
                await released.wait()
        private = path.startswith("/api/") and not path.startswith(("/api/auth/", "/api/health"))
        if private and self.api.password is not None and not self.api.logged_in:
            refused = refusal(401, "Log in first.")

        async def with_policy(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", []),
                    (b"content-security-policy", POLICY.encode()),
                ]
            await send(message)

        await (refused or self.app)(scope, receive, with_policy)

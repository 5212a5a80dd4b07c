"""What the scripted crew is made of: agents, tools, connections, settings."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from .shapes import shape

_TOOLS = ["workspace_list", "workspace_read", "workspace_write", "workspace_edit", "shell_run"]


class House:
    """Routes that tell of the crew itself."""

    def __init__(self) -> None:
        self.language = "en"
        self.members = [
            shape(
                "Agent",
                id="default",
                name="Pong",
                description="Keeps the house in order and answers for the others.",
                master=True,
                mode="supervised",
                routes=["openrouter:anthropic/claude-sonnet-4"],
                tools=_TOOLS,
                max_steps=40,
                cost_cap_usd=0.5,
            )
        ]

    async def agents(self, _: Request) -> Response:
        return JSONResponse(self.members)

    async def agent(self, request: Request) -> Response:
        found = [one for one in self.members if one["id"] == request.path_params["id"]]
        return JSONResponse(found[0]) if found else JSONResponse({"detail": "There is no such agent."}, 404)

    async def prompt(self, request: Request) -> Response:
        text = f"You are {request.path_params['id']}.\n\nBe short and exact."
        return JSONResponse(
            shape("AgentPrompt", prompt=text, prompt_chars=len(text), persona_names=["SOUL.md"])
        )

    async def tools(self, _: Request) -> Response:
        return JSONResponse(
            [
                shape(
                    "Tool",
                    name=name,
                    description="Works in the agent's workspace. It never leaves it.",
                    agents=[member["id"] for member in self.members if name in member["tools"]],
                    requires_approval=name not in ("workspace_list", "workspace_read"),
                    host="tools",
                )
                for name in _TOOLS
            ]
        )

    async def connections(self, _: Request) -> Response:
        routes = ["openrouter:anthropic/claude-sonnet-4", "ollama:qwen3:14b"]
        return JSONResponse(
            shape(
                "ConnectionsReply",
                providers=["openrouter", "ollama"],
                routes=routes,
                routes_source="config",
                keys=[
                    shape("KeyPresence", name="OPENROUTER_API_KEY", present=True),
                    shape("KeyPresence", name="OPENAI_API_KEY", present=False),
                ],
                route_states=[
                    shape("RouteState", route=routes[0], usable=True),
                    shape(
                        "RouteState",
                        route=routes[1],
                        usable=False,
                        note="Nothing listens on 127.0.0.1:11434.",
                    ),
                ],
                hosts=[
                    shape(
                        "HostState",
                        name="tools",
                        reachable=True,
                        isolation="os",
                        isolation_note="Sandboxed commands run under Landlock, proven at the start.",
                        tools=["workspace_list", "workspace_read", "workspace_write", "shell_run"],
                    )
                ],
            )
        )

    async def settings(self, _: Request) -> Response:
        rows = [
            ("routes", ["openrouter:anthropic/claude-sonnet-4", "ollama:qwen3:14b"], "config"),
            ("cost_cap_usd", 0.5, "default"),
            ("approval_ttl_seconds", 600, "env"),
            ("language", self.language, "default"),
        ]
        return JSONResponse(
            shape(
                "SettingsReply",
                version="0.1.0",
                home="/home/lan/.my-agent-crew",
                language=self.language,
                timezone="Asia/Ho_Chi_Minh",
                settings=[
                    shape("Setting", key=key, value=value, source=source) for key, value, source in rows
                ],
            )
        )

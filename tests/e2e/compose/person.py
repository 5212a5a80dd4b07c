"""What the owner does over HTTP: sets the password, sends messages, decides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import httpx

PASSWORD = "correct horse battery staple"  # of the test's own crew
Event = tuple[str, dict[str, Any]]


def set_up_token(log: str) -> str:
    """The one-time token of the link that the gateway wrote into its log; the newest one counts."""
    found = re.findall(r"#/setup/([A-Za-z0-9_-]+)", log)
    assert found, f"no set-up link in the log:\n{log[-3000:]}"
    return str(found[-1])


class Owner:
    """The owner's browser, as far as the API sees it."""

    def __init__(self, url: str, **client: Any) -> None:
        self.http = httpx.Client(base_url=url, timeout=60, trust_env=False, **client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()

    def set_up(self, token: str) -> None:
        """Set the password with the one-time token; this client is logged in then."""
        self.http.post(
            "/api/auth/setup", json={"setup_token": token, "password": PASSWORD}
        ).raise_for_status()

    def log_in(self) -> None:
        """Log in with the password."""
        self.http.post("/api/auth/login", json={"password": PASSWORD}).raise_for_status()

    def get(self, path: str) -> Any:
        """The JSON of an address."""
        return self.http.get(path).raise_for_status().json()

    def converse(self, title: str) -> str:
        """A new conversation's id."""
        return str(
            self.http.post("/api/conversations", json={"title": title}).raise_for_status().json()["id"]
        )

    def send(self, conversation: str, text: str) -> list[Event]:
        """Send a message and read the stream to its end."""
        return list(self.streamed("POST", f"/api/conversations/{conversation}/messages", json={"text": text}))

    def decide(self, approval: str, *, approve: bool) -> list[Event]:
        """Decide a request and read what the turn does then."""
        return list(self.streamed("POST", f"/api/approvals/{approval}", json={"approve": approve}))

    def streamed(self, method: str, path: str, **more: Any) -> Iterator[Event]:
        """Events as they come, by name and data."""
        with self.http.stream(method, path, **more) as answer:
            if answer.is_error:
                answer.read()
                raise AssertionError(f"{answer.status_code}: {answer.text}")
            name = ""
            for line in answer.iter_lines():
                if line.startswith("event:"):
                    name = line.removeprefix("event:").strip()
                elif line.startswith("data:"):
                    yield name, json.loads(line.removeprefix("data:"))


def text_of(events: list[Event]) -> str:
    """The reply's text, put together from its pieces."""
    return "".join(data.get("text", "") for name, data in events if name in {"text", "text_delta", "delta"})


def waiting(owner: Owner) -> list[dict[str, Any]]:
    """Requests that wait for the owner."""
    found: list[dict[str, Any]] = owner.get("/api/approvals/waiting")
    return found

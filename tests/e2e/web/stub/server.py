"""The scripted crew as a server in this process, steered from the test's thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from .api import Api
from .performer import Performer
from .plans import Plan
from .state import State, Talk

_T = TypeVar("_T")


class StubCrew:
    """Serves the built page and a scripted API on a free loopback port."""

    def __init__(self, static: Path) -> None:
        self.api = Api(static)
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: uvicorn.Server | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stub-crew", daemon=True)

    def start(self) -> StubCrew:
        """Serve until `close`."""
        self._thread.start()
        if not self._ready.wait(30):
            raise RuntimeError("the scripted crew did not start within 30 s")
        return self

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        config = uvicorn.Config(
            self.api.app(), log_level="warning", lifespan="off", timeout_graceful_shutdown=1, http="h11"
        )
        self._server = uvicorn.Server(config)
        self._server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            await asyncio.sleep(0.01)
        self._ready.set()
        await task

    def close(self) -> None:
        """Stop serving."""

        async def stop() -> None:
            for queue in list(self.api.state.watchers):
                queue.put_nowait(None)
            assert self._server is not None
            self._server.force_exit = True
            self._server.should_exit = True

        self.on_loop(stop)
        self._thread.join(10)

    def on_loop(self, work: Callable[[], Any]) -> Any:
        """Run `work` on the server's loop and give its answer."""
        assert self._loop is not None

        async def call() -> Any:
            answer = work()
            return await answer if asyncio.iscoroutine(answer) else answer

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(30)

    def reset(self) -> None:
        """Everything as at the start; running turns and streams end."""

        def fresh() -> None:
            for task in asyncio.all_tasks():
                if task.get_coro().__qualname__.startswith(Performer.__name__):  # type: ignore[union-attr]
                    task.cancel()
            for queue in list(self.api.state.watchers):
                queue.put_nowait(None)
            static = self.api.static
            services = self.api.services
            self.api.__init__(static)  # type: ignore[misc]
            self.api.services = [{**service, "reachable": True, "note": ""} for service in services]

        self.on_loop(fresh)

    # What tests say and ask.

    def plan(self, *plans: Plan) -> None:
        """The next turns, in order."""
        self.on_loop(lambda: self.api.plans.extend(plans))

    def release(self, name: str) -> None:
        """Let a turn that holds at `name` go on."""

        async def go() -> None:
            async with self.api.state.changed:
                self.api.state.released.add(name)
                self.api.state.changed.notify_all()

        self.on_loop(go)

    def talk(self, title: str, messages: int = 0, age: timedelta = timedelta()) -> str:
        """A stored conversation with this many messages; its id."""

        def make() -> str:
            state: State = self.api.state
            talk = state.open_talk(title, age)
            at = talk.head["updated_at"]
            for number in range(1, messages + 1):
                role = "user" if number % 2 else "assistant"
                words = (
                    f"Question {number}"
                    if number % 2
                    else f"Answer {number}, with **some** words.\n\n- one\n- two"
                )
                state.add_message(talk, role, words, created_at=at)
            return str(talk.head["id"])

        return str(self.on_loop(make))

    def begin(self, conversation_id: str, text: str) -> None:
        """A message from elsewhere: its turn starts without any tab of ours."""

        def go() -> None:
            talk: Talk = self.api.state.talks[conversation_id]
            self.api.state.add_message(talk, "user", text)
            self.api._begin(talk)

        self.on_loop(go)

    def look(self, read: Callable[[Api], _T]) -> _T:
        """Read something of the API's state."""
        answer: _T = self.on_loop(lambda: read(self.api))
        return answer

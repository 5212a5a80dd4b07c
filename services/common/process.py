"""A service as a process: settings, log, event loop, signals, and its end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, Self, TypeVar

from services.common import logging
from services.common.start import StartError
from services.common.wording import Locale, locale_of

# Exit code of a start that was refused with a sentence: starting again at once would not help.
REFUSED = 78
# To hand descriptors to a program uvloop runs Python between fork and exec, where gRPC's threads are
# gone: one child in five died of it. asyncio's own loop executes the program at once.
_PLAIN_LOOP = frozenset({"tools", "script_sandbox"})


class ServiceSettings(Protocol):
    """What every service's settings can do."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the slice."""

    @property
    def locale(self) -> Locale:
        """The language of what the service says by itself."""

    def secret_values(self) -> list[str]:
        """Values that may appear nowhere."""


S = TypeVar("S", bound=ServiceSettings)
T_contra = TypeVar("T_contra", bound=ServiceSettings, contravariant=True)


class Serve(Protocol[T_contra]):
    """The ``serve`` of a service's ``app`` module."""

    def __call__(
        self, settings: T_contra, *, ready: Callable[[], None] | None = None, stop: asyncio.Event
    ) -> Awaitable[None]:
        """Construct everything, call `ready` when it answers, serve until `stop`, end in order."""


def run_service(
    name: str,
    settings_type: type[S],
    serve: Serve[S],
    environ: Mapping[str, str],
    *,
    ready: Callable[[], None] | None = None,
    refused: Callable[[str], None] | None = None,
) -> int:
    """Run a service until SIGTERM or SIGINT, then let it end in order.

    Args:
        name: Of the service, for its log lines.
        settings_type: What `serve` takes.
        serve: The service.
        environ: The only place where settings are read from.
        ready: Called once it answers.
        refused: Called with the sentence of a start that cannot be; prints it when not given.

    Returns:
        The exit code: 0 after a stop that was asked for, `REFUSED` for a refused start.
    """
    locale = locale_of(environ.get("MY_AGENT_LANGUAGE"))
    try:
        settings = settings_type.from_environment(environ)
        locale = settings.locale
        logging.configure(name, secrets=settings.secret_values())
        _run(name, serve(settings, ready=ready, stop=(stop := asyncio.Event())), stop)
    except StartError as error:
        (refused or _print)(error.text(locale))
        return REFUSED
    return 0


def _run(name: str, serving: Awaitable[None], stop: asyncio.Event) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await serving

    if sys.platform == "win32" or name in _PLAIN_LOOP:
        asyncio.run(main())
        return
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def _print(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)  # noqa: T201  the log may not be there yet

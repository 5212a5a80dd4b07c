"""Looks after what the owner has to be told, and passes changes on to watchers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog
from crew.v1 import runs_pb2

from services.common.wording import Locale, load
from services.orchestrator.agents.agents import Agents
from services.orchestrator.calls.registry import ToolRegistry
from services.orchestrator.calls.trouble import CAUSES, Cause, troubles
from services.orchestrator.notifications.hosts import HostWatch
from services.orchestrator.notifications.views import notification_view
from services.orchestrator.store import notifications, wakeups
from services.orchestrator.store.pool import Database, DatabaseLost
from services.orchestrator.turns.activity import Activity

LOOK_SECONDS = 2.0
HOST_DOWN = "host_down"

log = structlog.get_logger(__name__)


class Notifier:
    """Tells the owner.

    Several orchestrators may look at once: what they look at is in Postgres, and so is what was told.

    Args:
        database: Holds the trail of calls and the notifications.
        registry: Knows how each host is.
        agents: For whom hosts are asked to describe themselves.
        activity: Where watchers are told.
        locale: Of the sentences.
        seconds: Between two looks.
        hosts: Remembers how long each host has been down.
    """

    def __init__(
        self,
        *,
        database: Database,
        registry: ToolRegistry,
        agents: Agents,
        activity: Activity,
        locale: Locale,
        seconds: float = LOOK_SECONDS,
        hosts: HostWatch | None = None,
    ) -> None:
        self._database = database
        self._registry = registry
        self._agents = agents
        self._activity = activity
        self._locale: Locale = locale
        self._seconds = seconds
        self._hosts = hosts or HostWatch()
        # Ids of rows that changed; "" when some were read.
        self._changed: asyncio.Queue[str] = asyncio.Queue(maxsize=1000)
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = False

    async def start(self) -> None:
        """Begin to look and to pass on."""
        self._tasks = [
            asyncio.create_task(self._keep_looking(), name="troubles"),
            asyncio.create_task(self._pass_on(), name="notifications"),
            asyncio.create_task(
                wakeups.listen(
                    self._database,
                    self._noticed,
                    stopped=lambda: self._stopped,
                    channel=notifications.CHANNEL,
                ),
                name="notified",
            ),
        ]

    async def close(self) -> None:
        """Stop looking."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def look(self) -> None:
        """Tell of every trouble that began or is over, end what was told of budgets, and give up what
        nobody was shown in time.

        Raises:
            DatabaseLost: Postgres is away; the next look finds the same.
        """
        await self._look_at_hosts()
        await self._look_at_tools()
        async with self._database.transaction() as connection:
            await notifications.end_budgets(connection)
        async with self._database.connection() as connection:
            if count := await notifications.give_up_overdue(connection):
                log.warning("notifications_not_delivered", count=count)

    async def _look_at_tools(self) -> None:
        async with self._database.connection() as connection:
            lately = await notifications.last_calls(connection)
            known = await notifications.open_troubles(connection)
        open_causes: dict[str, set[Cause]] = {}
        for trouble in known:
            for cause in CAUSES:
                if trouble.cause == cause:
                    open_causes.setdefault(trouble.subject, set()).add(cause)
        for calls in lately:
            before = open_causes.get(calls.tool, set())
            now = troubles(calls, before)
            for cause in CAUSES:
                if cause in now and cause not in before:
                    await self._begin(cause, calls.tool)
                elif cause in before and cause not in now:
                    await self._end(cause, calls.tool)

    async def _look_at_hosts(self) -> None:
        await self._registry.look(self._agents.list(), self._locale)
        for change in self._hosts.look(self._registry.states()):
            if change.down:
                await self._begin(HOST_DOWN, change.host)
            else:
                await self._end(HOST_DOWN, change.host)

    async def _begin(self, cause: str, subject: str) -> None:
        text = load("orchestrator").text(self._locale, f"health.trouble.{cause}", tool=subject)
        async with self._database.transaction() as connection:
            began = await notifications.begin_trouble(connection, cause, subject, text)
        if began:
            log.warning("in_trouble", subject=subject, cause=cause)

    async def _end(self, cause: str, subject: str) -> None:
        text = load("orchestrator").text(self._locale, f"health.recovered.{cause}", tool=subject)
        async with self._database.transaction() as connection:
            ended = await notifications.end_trouble(connection, cause, subject, text)
        if ended:
            log.info("recovered", subject=subject, cause=cause)

    async def _keep_looking(self) -> None:
        while True:
            try:
                await self.look()
            except DatabaseLost as error:
                log.warning("troubles_not_known", error=type(error).__name__)
            except Exception:
                log.exception("troubles_not_known")
            await asyncio.sleep(self._seconds)

    def _noticed(self, payload: str) -> None:
        # Full: the watchers are told too little too late, and read the list when they look.
        if not self._changed.full():
            self._changed.put_nowait(payload)

    async def _pass_on(self) -> None:
        while True:
            changed = {await self._changed.get()}
            while not self._changed.empty():
                changed.add(self._changed.get_nowait())
            if not self._activity.watchers:
                continue
            try:
                for frame in await self._frames(sorted(changed)):
                    self._activity.notified(frame)
            except DatabaseLost as error:
                log.warning("notifications_not_shown", error=type(error).__name__)

    async def _frames(self, changed: Sequence[str]) -> list[runs_pb2.NotificationFrame]:
        async with self._database.connection() as connection:
            unread = await notifications.unread(connection)
            found = [await notifications.get(connection, each) if each else None for each in changed]
        frames = []
        for notification in found:
            frame = runs_pb2.NotificationFrame(unread=unread)
            if notification is not None:
                frame.notification.CopyFrom(notification_view(notification))
            frames.append(frame)
        return frames

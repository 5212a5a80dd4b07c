"""What happens without anybody asking: leases, takeovers, queues, deadlines (TRN-082, 147, 210)."""

from __future__ import annotations

import asyncio
import contextlib
from uuid import uuid4

import structlog

from services.common.wording import Locale
from services.orchestrator.calls import closing
from services.orchestrator.store import (
    approvals,
    conversations,
    messages,
    queue,
    retention,
    runs,
    turns,
    wakeups,
)
from services.orchestrator.store.instance import Instance
from services.orchestrator.store.pool import Connection, Database, DatabaseLost, WriteRefused
from services.orchestrator.store.space import LOOK_SECONDS, Space
from services.orchestrator.store.turns import Claim, ClaimLost, Taken
from services.orchestrator.turns.decisions import Decisions
from services.orchestrator.turns.inbound import Inbound
from services.orchestrator.turns.runner import TurnRunner
from services.orchestrator.turns.writes import closing_message

log = structlog.get_logger(__name__)

RENEW_SECONDS = 5.0
# Beneath the notifications, which may be lost.
POLL_SECONDS = 1.0
# Between two removals of old records (FLD-052), and after one that failed.
SWEEP_SECONDS = 24 * 3600.0
SWEEP_AGAIN_SECONDS = 600.0
# A turn that its processes die under is taken up so often and then closed with the note.
RECOVERIES = 3


class Upkeep:
    """Keeps turns going across processes.

    Args:
        database: Shared by all orchestrators.
        runner: The turns of this one.
        inbound: Opens turns for waiting messages.
        decisions: Closes overdue requests.
        locale: Of the notes that close what a dead process left open.
        space: Looked at all the time; without room nothing is begun.
        keep_days: How long ended runs and decided requests are kept.
        address: Where other replicas reach this one.
        schedule: False starts nothing by itself: no takeover, no drain, no expiry (TRN-083).
    """

    def __init__(
        self,
        *,
        database: Database,
        runner: TurnRunner,
        inbound: Inbound,
        decisions: Decisions,
        locale: Locale,
        space: Space,
        keep_days: int,
        address: str = "",
        schedule: bool = True,
    ) -> None:
        self._database = database
        self._runner = runner
        self._inbound = inbound
        self._decisions = decisions
        self._locale: Locale = locale
        self._space = space
        self._keep_days = keep_days
        self._address = address
        self._schedule = schedule
        self._woken = asyncio.Event()
        self._stopped = False
        self._tasks: list[asyncio.Task[None]] = []
        self._instance: Instance | None = None
        self._keeping = asyncio.Lock()

    @property
    def instance(self) -> int:
        """The number under which this process claims turns."""
        assert self._instance is not None, "start() comes first"
        return self._instance.number

    async def start(self) -> None:
        """Register this process and begin to look after turns."""
        self._instance = await Instance.register(self._database, self._address)
        await self._space.look()
        self._tasks = [
            asyncio.create_task(self._watch_space(), name="space"),
            asyncio.create_task(self._renew(), name="leases"),
            asyncio.create_task(self._answer_waiting(), name="queues"),
            asyncio.create_task(self._look(), name="upkeep"),
            asyncio.create_task(
                wakeups.listen(self._database, lambda _: self._woken.set(), stopped=lambda: self._stopped),
                name="wakeups",
            ),
        ]
        async with self._database.connection() as connection:
            await runs.close_unowned(connection)
        if self._schedule:
            self._tasks.append(asyncio.create_task(self._sweep(), name="retention"))
        else:
            await self._close_cut_off()

    async def close(self) -> None:
        """Stop looking, hand the running turns over, and free the instance's lock."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._runner.close()
        if self._instance is not None:
            await self._instance.close()

    async def stop_elsewhere(self, conversation_id: str, *, seconds: float) -> bool:
        """Ask another process to stop its turn; True when one ran, once it has ended or time is up."""
        async with self._database.connection() as connection:
            if not await turns.request_stop(connection, conversation_id):
                return False
            await wakeups.notify(connection)
        for _ in range(max(1, round(seconds / 0.1))):
            async with self._database.connection() as connection:
                if await turns.running(connection, conversation_id) is None:
                    break
            await asyncio.sleep(0.1)
        return True

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                await self._keep_instance()
                async with self._database.connection() as connection:
                    await turns.renew(connection, self.instance, self._runner.working_on)
            except DatabaseLost as error:
                self._note(error)
                log.warning("leases_not_renewed", error=type(error).__name__)

    async def _keep_instance(self) -> None:
        """See to it that the others know this process to live."""
        async with self._keeping:
            assert self._instance is not None
            if await self._instance.alive():
                return
            log.warning("instance_lock_lost", instance=self._instance.number)
            if not await self._instance.regain(self._database):
                # Under the old number it would be taken for dead: let go of everything and start anew.
                await self._runner.stop_all("lost")
                before, self._instance = (
                    self._instance,
                    await Instance.register(self._database, self._address),
                )
                await before.close()
        self._woken.set()

    async def _answer_waiting(self) -> None:
        """Answer what waited for a turn as soon as it is over."""
        while True:
            conversation_id = await self._runner.freed.get()
            if self._stopped:
                return
            if self._space.shortage:
                continue
            try:
                await self._drain(conversation_id)
            except DatabaseLost as error:
                self._note(error)
                log.warning("queue_not_drained", error=type(error).__name__)

    async def _look(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self._keep_instance()
                # First, as somebody waits for it; and asked for, so whatever starts by itself.
                await self._stop_requested()
                if self._schedule and not self._space.shortage:
                    await self._take_over()
                    await self._drain_all()
                    await self._expire()
            except DatabaseLost as error:
                self._note(error)
                log.warning("upkeep_lost_database", error=type(error).__name__)
            except Exception:
                log.exception("upkeep_failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._woken.wait()

    async def _watch_space(self) -> None:
        """End what runs when there is no room, and go on as soon as there is (FLD-051)."""
        while True:
            before = self._space.shortage
            try:
                shortage = await self._space.look()
            except OSError as error:
                log.warning("space_not_known", error=type(error).__name__)
                shortage = before
            # By the disk alone: what ends now can still be written down.
            if shortage == "disk" and self._runner.running:
                await self._runner.stop_all("full")
            if before and not shortage:
                self._woken.set()
            await asyncio.sleep(LOOK_SECONDS)

    async def _sweep(self) -> None:
        while True:
            pause = SWEEP_AGAIN_SECONDS
            try:
                if not self._space.shortage:
                    removed = await retention.sweep(self._database, days=self._keep_days)
                    log.info("old_records_removed", **removed)
                    pause = SWEEP_SECONDS
            except DatabaseLost as error:
                self._note(error)
                log.warning("old_records_not_removed", error=type(error).__name__)
            except Exception:
                log.exception("sweep_failed")
            await asyncio.sleep(pause)

    def _note(self, error: Exception) -> None:
        if isinstance(error, WriteRefused):
            self._space.refused(error)

    async def _drain(self, conversation_id: str) -> None:
        if opened := await self._inbound.drain(conversation_id, instance=self.instance):
            self._runner.start(opened.claim, opened.run, opened.conversation)

    async def _drain_all(self) -> None:
        async with self._database.connection() as connection:
            waiting = await queue.drainable(connection)
        for conversation_id in waiting:
            await self._drain(conversation_id)

    async def _expire(self) -> None:
        async with self._database.connection() as connection:
            overdue = await approvals.overdue(connection)
        for approval in overdue:
            if decided := await self._decisions.expire(approval.id, instance=self.instance):
                self._runner.start(decided.claim, decided.run, decided.conversation)

    async def _stop_requested(self) -> None:
        async with self._database.connection() as connection:
            for conversation_id in await turns.stops_requested(connection, self.instance):
                await self._runner.stop(conversation_id)

    async def _take_over(self) -> None:
        async with self._database.connection() as connection:
            while self._runner.dropped:
                claim, stop = self._runner.dropped[0]
                await turns.drop(connection, claim, stop=stop)
                del self._runner.dropped[0]
            taken = await turns.take_over(connection, self.instance, working_on=self._runner.working_on)
        for each in taken:
            try:
                await self._recover(each)
            except ClaimLost:
                continue

    async def _close_cut_off(self) -> None:
        """End the turns whose process died: here nothing goes on by itself (TRN-147, TRN-157).

        Their conversations are free for the next message.
        """
        async with self._database.connection() as connection:
            taken = await turns.take_over(connection, self.instance, working_on=[])
        for each in taken:
            async with self._database.transaction() as connection:
                await turns.hold(connection, each.claim)
                await runs.set_status(connection, each.claim.run_id, "error", "interrupted")
                await self._close(connection, each.claim)

    async def _recover(self, taken: Taken) -> None:
        """Go on with a turn whose process died: its run is closed, another one takes its place.

        One whose time is up, or which a person wanted to stop, is closed instead.
        """
        claim = taken.claim
        async with self._database.transaction() as connection:
            await turns.hold(connection, claim)
            before = await runs.get(connection, claim.run_id)
            conversation = await conversations.get(connection, claim.conversation_id)
            assert before is not None
            assert conversation is not None
            overdue = taken.overdue
            await runs.set_status(
                connection, before.id, "halted" if overdue else "error", "time" if overdue else "interrupted"
            )
            if overdue or taken.stop_requested or before.recoveries >= RECOVERIES:
                await self._close(connection, claim)
                run = None
            else:
                run = await self._run_after(connection, claim, before)
                claim = await turns.hand_to_run(connection, claim, run.id)
                await queue.requests_moved(connection, claim.conversation_id, before.id, run.id)
        if overdue:
            log.warning("turn_taken_away", conversation_id=claim.conversation_id, run_id=before.id)
            self._runner.taken_away(claim.conversation_id)
        if run is not None:
            log.info("turn_taken_up", conversation_id=claim.conversation_id, run_id=run.id)
            self._runner.start(claim, run, conversation, recovered=True)

    async def _run_after(self, connection: Connection, claim: Claim, before: runs.Run) -> runs.Run:
        """The run that takes the place of one that was cut off."""
        return await runs.create(
            connection,
            run_id=str(uuid4()),
            conversation_id=claim.conversation_id,
            agent_id=before.agent_id,
            source=before.source,
            after_seq=await messages.last_seq(connection, claim.conversation_id),
            model_calls=before.model_calls,
            recoveries=before.recoveries + 1,
            recovered_from=before.id,
        )

    async def _close(self, connection: Connection, claim: Claim) -> None:
        calls = await messages.open_calls(connection, claim.conversation_id)
        outcomes = [closing.close(call, "restarted", self._locale) for call in calls]
        await turns.release(connection, claim)
        results = [closing_message(outcome, claim.run_id) for outcome in outcomes]
        await messages.append(connection, claim.conversation_id, results)

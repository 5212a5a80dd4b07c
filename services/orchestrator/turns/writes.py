"""What a turn writes, each in one transaction that asks whether the turn is still its own.

Nothing here decides; the loop and the pipeline do. After each commit the turn's copies follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from crew.v1 import runs_pb2

from services.orchestrator.calls.arguments import digest
from services.orchestrator.calls.contract import ApprovalDraft, CallOutcome
from services.orchestrator.models.contract import Reply, Route
from services.orchestrator.money.usage import stored_usage
from services.orchestrator.store import (
    approvals,
    audit,
    conversations,
    messages,
    queue,
    runs,
    turns,
)
from services.orchestrator.store.messages import NewMessage
from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.store.records import (
    Approval,
    Conversation,
    Message,
    RunStatus,
    StoredCall,
)
from services.orchestrator.turns.charging import charge_model_call, charge_tools
from services.orchestrator.turns.inner_writes import InnerWrites
from services.orchestrator.turns.trail import Trail
from services.orchestrator.turns.turn import Turn
from services.orchestrator.turns.unbroken import unbroken


@dataclass(frozen=True, slots=True)
class Closing:
    """How a run ends."""

    status: RunStatus
    summary: str
    # Not when a steer message waits: the turn goes on with it (TRN-073).
    unless_steered: bool = False


class TurnWrites:
    """The transactions of running turns.

    Every method raises `ClaimLost` when another process took the turn over, and the errors of
    `DatabaseLost` when Postgres is away; both mean that nothing was written.

    Args:
        database: Where to.
        trail: Makes the entries of the audit trail.
    """

    def __init__(self, database: Database, trail: Trail) -> None:
        self._database = database
        self.trail = trail

    def inner(self, turn: Turn) -> InnerWrites:
        """Of the calls that calls of the turn make."""
        return InnerWrites(self._database, self.trail, turn)

    async def take_steers(self, turn: Turn) -> Sequence[str]:
        """Move waiting steer messages into the log as one message of the person (TRN-069, TRN-080).

        Returns:
            The texts that were taken, in order.
        """
        async with self._database.connection() as connection:
            if not await queue.any_steer(connection, turn.conversation_id):
                return ()
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            items = await queue.take(connection, turn.conversation_id, kind="steer")
            if not items:
                return ()
            text = "\n\n".join(item.text for item in items)
            stored = await messages.append(
                connection, turn.conversation_id, [NewMessage("user", "person", text, turn.run_id)]
            )
            await queue.requests_answered_by(
                connection, turn.conversation_id, [item.id for item in items], turn.run_id
            )
            step = turn.recorder.note("steer", text=text if len(text) <= 200 else f"{text[:199]}…")
            await turn.recorder.write(connection, step)
        turn.log.extend(stored)
        return [item.text for item in items]

    async def reply(
        self,
        turn: Turn,
        reply: Reply,
        calls: Sequence[StoredCall],
        *,
        note: str = "",
        closing: Closing | None = None,
    ) -> tuple[Message, bool]:
        """Store what the model said, what it cost, and what follows from it (TRN-258, TRN-259).

        All in one transaction: a turn taken up after a crash never stands behind a last word without
        knowing that it was the last.

        Args:
            turn: The turn.
            reply: The whole reply.
            calls: Its calls.
            note: Of the loop, in the user role, behind the reply; empty for none.
            closing: How the run ends with this reply; None when it goes on.

        Returns:
            The stored reply, and whether the run is closed now.
        """
        return await unbroken(self._reply(turn, reply, calls, note, closing))

    async def _reply(
        self, turn: Turn, reply: Reply, calls: Sequence[StoredCall], note: str, closing: Closing | None
    ) -> tuple[Message, bool]:
        message = NewMessage(
            "assistant",
            "agent",
            reply.text,
            turn.run_id,
            tool_calls=calls,
            provider=reply.route.provider,
            model=reply.route.model,
            cost_usd=reply.cost_usd,
            cost_estimated=reply.cost_estimated,
            usage=stored_usage(reply),
            opaque=reply.opaque,
        )
        following = [NewMessage("user", "system", note, turn.run_id)] if note else []
        closed = False
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            stored = await messages.append(connection, turn.conversation_id, [message, *following])
            charged = await charge_model_call(
                connection, turn, answered=True, cost_usd=reply.cost_usd, abandoned=reply.abandoned
            )
            if closing is not None:
                closed = await self._close(connection, turn, closing)
            if turn.model_step is not None and not closed:
                await turn.recorder.write(connection, turn.model_step)
        turn.log.extend(stored)
        turn.shown, turn.served_by, turn.model_step = "", None, None
        charged.show(turn)
        return stored[0], closed

    async def note(self, turn: Turn, text: str) -> None:
        """Store a note of the loop in the user role (TRN-118, TRN-171)."""
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            turn.log.extend(
                await messages.append(
                    connection, turn.conversation_id, [NewMessage("user", "system", text, turn.run_id)]
                )
            )

    async def starting(self, turn: Turn, entry: audit.NewEntry, step: runs_pb2.RunStep) -> None:
        """Record why a call may run, before it does (I1); an approved one counts as begun from here."""
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            if entry.allowed_by == "approved":
                await approvals.mark_started(connection, turn.conversation_id, entry.call.call_id)
            if entry.allowed_by == "always":
                await conversations.count_use(connection, turn.conversation_id, entry.rule)
            await audit.record(connection, [entry])
            await turn.recorder.write(connection, step)

    async def outcomes(
        self,
        turn: Turn,
        outcomes: Sequence[CallOutcome],
        steps: Sequence[runs_pb2.RunStep],
    ) -> None:
        """Store the results of calls in the order written, with their steps and their cost."""
        stored_messages = [closing_message(outcome, turn.run_id) for outcome in outcomes]
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            stored = await messages.append(connection, turn.conversation_id, stored_messages)
            charged = await charge_tools(connection, turn, outcomes)
            await turn.recorder.write(connection, *steps)
            await audit.record(connection, self.trail.ends(turn, outcomes))
        turn.log.extend(stored)
        for outcome in outcomes:
            turn.charged.pop(outcome.call.id, None)
        if charged is not None:
            charged.show(turn)

    async def pause(self, turn: Turn, call: StoredCall, draft: ApprovalDraft, ttl_seconds: int) -> Approval:
        """Put a request before a person and give the conversation free; nothing runs (TRN-196)."""
        step = turn.recorder.open(
            "approval",
            name=draft.tool,
            arguments=draft.arguments_json,
            tool_call_id=call.id,
            text=draft.reason or draft.summary,
            verdict="asked",
        )
        async with self._database.transaction() as connection:
            await turns.keep_time_left(connection, turn.claim)
            await turns.release(connection, turn.claim)
            approval = await approvals.create(
                connection,
                approval_id=str(uuid4()),
                conversation_id=turn.conversation_id,
                agent_id=turn.agent.id,
                run_id=turn.run_id,
                kind=draft.kind,
                tool=draft.tool,
                tool_call_id=call.id,
                arguments=draft.arguments_json,
                arguments_sha256=draft.arguments_sha256,
                reason=draft.reason,
                summary=draft.summary,
                preview=draft.preview,
                options=draft.options,
                default_answer=draft.default_answer,
                may_always=draft.may_always,
                token=draft.token,
                target_state=draft.target_state,
                review=draft.review,
                ttl_seconds=ttl_seconds,
            )
            await runs.set_status(connection, turn.run_id, "awaiting_approval")
            await turn.recorder.write(connection, step)
        return approval

    async def finish(self, turn: Turn, status: RunStatus, summary: str) -> None:
        """End the run and give the conversation free."""
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            await self._close(connection, turn, Closing(status, summary))

    async def interrupted(
        self, turn: Turn, summary: str, closed: Sequence[CallOutcome], *, status: RunStatus = "error"
    ) -> None:
        """End a turn that was cut off: what was shown stays, open calls get their results (TRN-094)."""
        stored_messages = [closing_message(outcome, turn.run_id) for outcome in closed]
        if turn.shown:
            stored_messages.append(NewMessage("assistant", "agent", turn.shown, turn.run_id))
        abandoned = [turn.served_by] if turn.served_by else []
        async with self._database.transaction() as connection:
            await turns.release(connection, turn.claim)
            await messages.append(connection, turn.conversation_id, stored_messages)
            await audit.record(connection, self.trail.ends(turn, closed))
            if abandoned:
                await charge_model_call(connection, turn, answered=False, cost_usd=None, abandoned=abandoned)
            await runs.set_status(connection, turn.run_id, status, summary)
            open_steps = [step for step in (turn.model_step, *turn.call_steps.values()) if step is not None]
            await turn.recorder.write(connection, *open_steps)

    async def cut_off(
        self, turn: Turn, closing: Closing, abandoned: Sequence[Route], partial_text: str = ""
    ) -> None:
        """End the run after a model call that gave no whole reply: its text stays, its price is unknown."""
        partial = [NewMessage("assistant", "agent", partial_text, turn.run_id)] if partial_text else []
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            stored = await messages.append(connection, turn.conversation_id, partial)
            charged = await charge_model_call(
                connection, turn, answered=False, cost_usd=None, abandoned=abandoned
            )
            await self._close(connection, turn, closing)
        turn.log.extend(stored)
        turn.model_calls += 1
        charged.show(turn)

    async def broke_off(
        self, turn: Turn, partial_text: str, note: str, abandoned: Sequence[Route], step: runs_pb2.RunStep
    ) -> Message:
        """Store what a reply had said before it broke off, with a note of the loop to go on from there."""
        return await unbroken(self._broke_off(turn, partial_text, note, abandoned, step))

    async def _broke_off(
        self, turn: Turn, partial_text: str, note: str, abandoned: Sequence[Route], step: runs_pb2.RunStep
    ) -> Message:
        said = [
            NewMessage("assistant", "agent", partial_text, turn.run_id),
            NewMessage("user", "system", note, turn.run_id),
        ]
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            stored = await messages.append(connection, turn.conversation_id, said)
            charged = await charge_model_call(
                connection, turn, answered=False, cost_usd=None, abandoned=abandoned
            )
            open_steps = [turn.model_step] if turn.model_step is not None else []
            await turn.recorder.write(connection, *open_steps, step)
        turn.log.extend(stored)
        turn.shown, turn.served_by, turn.model_step = "", None, None
        turn.model_calls += 1
        charged.show(turn)
        return stored[0]

    async def failed_over(self, turn: Turn, abandoned: Sequence[Route], step: runs_pb2.RunStep) -> None:
        """Count a model call that failed on every route and record that the turn goes on elsewhere."""
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            charged = await charge_model_call(
                connection, turn, answered=False, cost_usd=None, abandoned=abandoned
            )
            await turn.recorder.write(connection, step)
        charged.show(turn)

    async def step(self, turn: Turn, step: runs_pb2.RunStep) -> None:
        """Store one step by itself."""
        async with self._database.transaction() as connection:
            await turns.hold(connection, turn.claim)
            await turn.recorder.write(connection, step)

    async def reread(self, turn: Turn) -> Conversation:
        """Follow what a person changed in the conversation meanwhile: autonomy, grants, cap (PIP-004)."""
        async with self._database.connection() as connection:
            current = await conversations.get(connection, turn.conversation_id)
        if current is None:
            raise turns.ClaimLost(turn.conversation_id)
        turn.conversation = current
        return current

    async def _close(self, connection: Connection, turn: Turn, closing: Closing) -> bool:
        """End the run whose claim is held; False when a steer message keeps it going."""
        # The sender locks the conversation, as the claim's holder does, so no steer slips in behind.
        if closing.unless_steered and await queue.any_steer(connection, turn.conversation_id):
            return False
        await turns.release(connection, turn.claim)
        await runs.set_status(connection, turn.run_id, closing.status, closing.summary)
        open_steps = [step for step in (turn.model_step, *turn.call_steps.values()) if step is not None]
        await turn.recorder.write(connection, *open_steps)
        return True


def closing_message(outcome: CallOutcome, run_id: str | None) -> NewMessage:
    """The tool message that closes a call."""
    return NewMessage(
        "tool",
        "tool",
        outcome.text,
        run_id,
        tool_call_id=outcome.call.id,
        name=outcome.call.name,
        is_error=not outcome.ok,
        details=outcome.details_json,
        context=outcome.script.json() if outcome.script else None,
        outcome=outcome.outcome,
        arguments_sha256=digest(outcome.arguments_json),
    )

"""What a person's decision does, and what the lack of one does (TRN-199 to 215).

A decision and the claim on the conversation are one transaction: from the moment it is given the
conversation is held for the resumed turn, so a message right after it queues and a second decision
is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from services.common.errors import Conflict, Invalid, NotFound
from services.orchestrator.money.question import asked_about
from services.orchestrator.store import approvals, conversations, runs, spending, turns
from services.orchestrator.store.pool import Connection, Database
from services.orchestrator.store.records import Approval, ApprovalStatus, Conversation
from services.orchestrator.turns.views import always_allows

ANSWER_CHARS = 20_000


class Expired(Conflict):
    """The request's time is up, and nobody has closed it yet."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A request that was just settled, with the claim under which its turn goes on."""

    approval: Approval
    claim: turns.Claim
    run: runs.Run
    conversation: Conversation


class Decisions:
    """Settles requests, each once."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def decide(
        self,
        approval_id: str,
        *,
        conversation_id: str | None,
        approve: bool,
        always: bool,
        by: str,
        instance: int,
    ) -> Decided:
        """Approve or deny a call.

        Args:
            approval_id: Of the request.
            conversation_id: Where the caller believes it to be; None: anywhere.
            approve: Whether the call may run.
            always: Let calls like it run unasked here (FLD-021); counts only when offered (TRN-204).
            by: Who decides, for the record.
            instance: Of this process.

        Raises:
            NotFound: No such request in that conversation.
            Expired: Its time is up; it still has to be closed.
            Conflict: It is decided, expired or a question.
        """
        status: ApprovalStatus = "approved" if approve else "denied"
        async with self._database.transaction() as connection:
            approval, conversation = await self._pending(connection, approval_id, conversation_id)
            if approval.kind == "question":
                raise Conflict("IS_QUESTION", "error.is_question")
            settled = await approvals.settle(connection, approval_id, status, decided_by=by)
            if approval.kind == "budget":
                await spending.answer(connection, asked_about(approval), go_on=approve, by=by)
            allows = always_allows(approval) if approve and always else None
            if allows is not None:
                await conversations.grant(connection, approval.conversation_id, allows)
            return await self._resume(connection, settled, conversation, instance)

    async def answer(
        self, approval_id: str, *, conversation_id: str | None, answer: str, by: str, instance: int
    ) -> Decided:
        """Answer a question.

        Raises:
            Invalid: The answer is blank or over `ANSWER_CHARS` characters.
            NotFound: No such request in that conversation.
            Expired: Its time is up; it still has to be closed.
            Conflict: It is decided, expired or no question.
        """
        if not answer.strip():
            raise Invalid("EMPTY_ANSWER", "error.empty_answer")
        if len(answer) > ANSWER_CHARS:
            raise Invalid("ANSWER_TOO_LONG", "error.answer_too_long", limit=ANSWER_CHARS)
        async with self._database.transaction() as connection:
            approval, conversation = await self._pending(connection, approval_id, conversation_id)
            if approval.kind != "question":
                raise Conflict("NOT_A_QUESTION", "error.not_a_question")
            settled = await approvals.settle(
                connection, approval_id, "answered", decided_by=by, answer=answer
            )
            return await self._resume(connection, settled, conversation, instance)

    async def expire(self, approval_id: str, *, instance: int) -> Decided | None:
        """Close an overdue request; None when a decision was faster (TRN-210, TRN-211)."""
        async with self._database.transaction() as connection:
            found = await approvals.get(connection, approval_id)
            if found is None:
                return None
            conversation = await conversations.lock(connection, found.conversation_id)
            if conversation is None:
                return None
            settled = await approvals.settle(connection, approval_id, "expired", decided_by="expiry")
            if settled is None:
                return None
            return await self._resume(connection, settled, conversation, instance)

    async def _pending(
        self, connection: Connection, approval_id: str, conversation_id: str | None
    ) -> tuple[Approval, Conversation]:
        found = await approvals.get(connection, approval_id)
        if found is None or (conversation_id and found.conversation_id != conversation_id):
            raise NotFound("NO_APPROVAL", "error.no_approval", id=approval_id)
        conversation = await conversations.lock(connection, found.conversation_id)
        # Read again under the lock: a decision may have been faster.
        current = await approvals.get(connection, approval_id)
        if conversation is None or current is None:
            raise NotFound("NO_APPROVAL", "error.no_approval", id=approval_id)
        if current.status != "pending":
            raise Conflict("ALREADY_DECIDED", f"error.already_{current.status}")
        if await _overdue(connection, approval_id):
            raise Expired("ALREADY_DECIDED", "error.already_expired")
        return current, conversation

    async def _resume(
        self, connection: Connection, settled: Approval | None, conversation: Conversation, instance: int
    ) -> Decided:
        assert settled is not None, "the request was read as waiting under the conversation's lock"
        claim = await turns.claim(connection, conversation.id, settled.run_id, instance)
        if claim is None:
            raise Conflict("BUSY", "error.busy")
        await runs.set_status(connection, settled.run_id, "running")
        run = await runs.get(connection, settled.run_id)
        assert run is not None
        current = await conversations.get(connection, conversation.id)
        return Decided(settled, claim, run, current or conversation)


async def _overdue(connection: Connection, approval_id: str) -> bool:
    cursor = await connection.execute(
        "select expires_at <= now() as overdue from approvals where id = %s", (approval_id,)
    )
    row = await cursor.fetchone()
    return bool(row and row["overdue"])

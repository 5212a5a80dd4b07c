"""Scripts that outlive their orchestrator: where a reading script stands after each answered request.

The program's state is the sandbox's; what was counted is ours. Both are written behind the script's
back, the newest in the place of the one before: a checkpoint that comes too late costs a repeated
read, never a wrong answer.
"""

from __future__ import annotations

import asyncio
import hashlib

import structlog
from crew.v1 import script_sandbox_pb2 as pb

from services.orchestrator.scripts.answering import ScriptRequests
from services.orchestrator.store import script_checkpoints
from services.orchestrator.store.pool import Database, DatabaseLost
from services.orchestrator.store.script_checkpoints import Checkpoint

_log = structlog.get_logger(__name__)

# Of one state; a larger one is not kept, and neither is the one before (script-sandbox contract).
_MOST_STATE_BYTES = 4 * 1024 * 1024


class Durable:
    """Keeps the checkpoints of one script.

    Args:
        database: Where they are kept.
        call_id: Of the `tool_script` call.
        conversation_id: Of its turn.
        script: The text a checkpoint belongs to.
        requests: What was counted so far.
    """

    def __init__(
        self, database: Database, call_id: str, conversation_id: str, script: str, requests: ScriptRequests
    ) -> None:
        self._database = database
        self._call_id = call_id
        self._conversation_id = conversation_id
        self._script_sha256 = hashlib.sha256(script.encode(errors="surrogatepass")).digest()
        self._requests = requests
        self._newest: Checkpoint | None = None
        self._writing: asyncio.Task[None] | None = None
        self._written = False

    async def found(self) -> Checkpoint | None:
        """Where the script stood when its orchestrator died; what was counted then counts again."""
        async with self._database.connection() as connection:
            checkpoint = await script_checkpoints.find(connection, self._call_id, self._script_sha256)
        if checkpoint is None:
            return None
        self._written = True
        if not self._requests.restore(checkpoint.progress):
            return None
        return checkpoint

    def begins_anew(self) -> None:
        """The sandbox could not use the checkpoint: the script begins at its first line."""
        self._requests.restart()

    def answered(self, seq: int, state: bytes | None, answer: pb.ToSandbox) -> None:
        """The request `seq` has its answer; the program stood at it with `state`."""
        if state is None or len(state) > _MOST_STATE_BYTES:
            return
        progress = self._requests.progress()
        self._newest = Checkpoint(seq, state, answer.SerializeToString(), progress)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def close(self) -> None:
        """The script has ended: nothing of it is taken up again."""
        self._newest = None
        if self._writing is not None:
            await asyncio.wait({self._writing})
        if not self._written:
            return
        try:
            async with self._database.connection() as connection:
                await script_checkpoints.forget(connection, self._call_id)
        except DatabaseLost:
            # It is of an ended call, which nobody takes up; a day later it is gone.
            _log.warning("script_checkpoint_stays", call_id=self._call_id)

    async def _write(self) -> None:
        while (checkpoint := self._newest) is not None:
            self._newest = None
            try:
                async with self._database.connection() as connection:
                    await script_checkpoints.keep(
                        connection,
                        self._call_id,
                        checkpoint,
                        conversation_id=self._conversation_id,
                        script_sha256=self._script_sha256,
                    )
                self._written = True
            except DatabaseLost:
                _log.warning("script_checkpoint_lost", call_id=self._call_id)

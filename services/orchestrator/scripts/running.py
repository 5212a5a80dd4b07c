"""One script from its text to its result (SCR-239 to 246, 268 to 284, 354 to 357)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog
from crew.v1 import script_sandbox_pb2 as pb
from crew.v1 import script_sandbox_pb2_grpc

from services.common.toolhost.contract import Outcome, Run, ToolResult, text_result
from services.common.toolhost.nested import ScriptRecord
from services.common.wording import Locale, load
from services.orchestrator.calls.inner import InnerCalls, InnerDesk
from services.orchestrator.scripts.answering import ScriptRequests
from services.orchestrator.scripts.durable import Durable
from services.orchestrator.scripts.limits import SCRIPT_CHARS, TOTAL_SECONDS
from services.orchestrator.scripts.notebook import Notebook, NotKept
from services.orchestrator.scripts.questions import Questions
from services.orchestrator.scripts.reach import reach
from services.orchestrator.scripts.session import End, Failed, Finished, Killed, Refused, Session
from services.orchestrator.store.pool import Database, DatabaseLost
from services.orchestrator.store.scripts import StoreName
from services.orchestrator.store.turns import ClaimLost

_log = structlog.get_logger(__name__)


class Scripts:
    """Runs scripts of turns.

    Args:
        sandbox: The service that interprets them.
        desk: Where the calls of a running script go.
        questions: Asks models for scripts.
        database: Of what scripts keep.
        seconds: Of one script, waits included.
    """

    def __init__(
        self,
        *,
        sandbox: script_sandbox_pb2_grpc.ScriptSandboxAsyncStub,
        desk: InnerDesk,
        questions: Questions,
        database: Database,
        seconds: float = TOTAL_SECONDS,
    ) -> None:
        self._sandbox = sandbox
        self._desk = desk
        self._questions = questions
        self._database = database
        self._seconds = seconds

    async def run(self, run: Run) -> ToolResult:
        """Run the script of a `tool_script` call; every way in which it ends is a result."""
        ending = _Ending(run.context.locale)
        script = str(run.arguments["script"])
        if len(script) > SCRIPT_CHARS:
            return ending.failure("too_long", outcome="not_started", limit=SCRIPT_CHARS)
        inner = self._desk.of(run.context.call_id)
        open_tools = reach(inner.agent, inner.toolbox.tools)
        name = StoreName(inner.agent.id, f"conv:{run.context.conversation_id}", run.context.conversation_id)
        # Read while the script begins: few scripts touch their store.
        notebook = asyncio.ensure_future(Notebook.of(self._database, name, run.context.locale))
        requests = ScriptRequests(run, inner, open_tools, self._questions, notebook)
        durable = self._durable(run, inner, script, requests)
        try:
            resume = await durable.found() if durable is not None and inner.taken_over else None
            start = pb.ScriptStart(
                script=script,
                locale=run.context.locale,
                callable_tools=open_tools.callable.names,
                llm_enabled=inner.agent.script_llm,
                store_available=True,
                checkpoints=durable is not None,
                resume=resume.state if resume is not None else b"",
            )
            session = Session(
                self._sandbox, start, requests, keeping=durable, resume=resume, seconds=self._seconds
            )
            end = await session.run()
            result = await self._kept(end, requests, ending)
            if durable is not None:
                await durable.close()
        except asyncio.CancelledError:
            # Every call of it has ended; the host says that the turn was stopped.
            result = ending.failure("cancelled", outcome="unknown")
        except (ClaimLost, *DatabaseLost):
            # The turn itself can not go on here.
            raise
        except Exception as error:
            _log.exception("script_failed", call_id=run.context.call_id)
            result = ending.crashed(error, run.context.call_id)
        finally:
            notebook.cancel()
        return requests.on(result, ending.printed_chars)

    def _durable(self, run: Run, inner: InnerCalls, script: str, requests: ScriptRequests) -> Durable | None:
        """For scripts that only read: any other is never run again (SCR-286)."""
        if inner.agent.script_calls == "gated":
            return None
        context = run.context
        return Durable(self._database, context.call_id, context.conversation_id, script, requests)

    async def _kept(self, end: End, requests: ScriptRequests, ending: _Ending) -> ToolResult:
        """The result of a script that has ended, after what it stored is kept."""
        if isinstance(end, Finished):
            try:
                await requests.kept(end.writes)
            except NotKept as error:
                ending.printed_chars = end.printed_chars
                return ending.failed(error.text, end.printed)
            except ValueError as error:
                _log.warning("script_sandbox_out_of_line", why=str(error)[:200])
                end = Killed("protocol")
        return ending.of(end)


class _Ending:
    """Says how a script ended: what it printed, or the opening line, what it printed, and why."""

    def __init__(self, locale: Locale) -> None:
        self._locale: Locale = locale
        self._words = load("orchestrator")
        self.printed_chars = 0

    def of(self, end: End) -> ToolResult:
        """The result of `end`."""
        match end:
            case Finished():
                self.printed_chars = end.printed_chars
                return text_result(end.printed or self._text("printed_nothing"))
            case Failed():
                self.printed_chars = end.printed_chars
                return self.failed(
                    end.message, end.printed, outcome="not_started" if end.rejected else "done"
                )
            case Refused():
                self.printed_chars = end.printed_chars
                message = self._text("stopped", line=end.line, reason=end.reason)
                return self.failed(message, end.printed)
            case Killed():
                message = end.message or self._text(f"killed.{end.by}")
                outcome: Outcome = "not_started" if end.by == "unavailable" else "done"
                return self.failed(message, "", outcome=outcome)

    def failure(self, key: str, *, outcome: Outcome, **values: object) -> ToolResult:
        """A script that came to nothing, for a reason of our own."""
        return self.failed(self._text(key, **values), "", outcome=outcome)

    def crashed(self, error: Exception, call_id: str) -> ToolResult:
        """A fault of our own: its type and where to look it up (TLS-028)."""
        text = self._words.text(self._locale, "calls.unexpected", kind=type(error).__name__, call_id=call_id)
        return replace(self.failed(text, "", outcome="unknown"), fault="crash")

    def failed(self, message: str, printed: str, *, outcome: Outcome = "done") -> ToolResult:
        """The opening line by which a failed script is known, what was printed, the reason (SCR-354)."""
        if printed and not printed.endswith("\n"):
            printed += "\n"
        text = f"{self._text('opening')}\n{printed}{message}"
        return text_result(text, is_error=True, outcome=outcome, script=ScriptRecord())

    def _text(self, key: str, **values: object) -> str:
        return self._words.text(self._locale, f"scripts.ended.{key}", **values)

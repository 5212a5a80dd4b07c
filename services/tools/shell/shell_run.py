"""`shell_run`: one command of an agent in its workspace (tools.md section 9)."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

import structlog

from services.common.toolhost.contract import (
    Arguments,
    Ask,
    CallContext,
    Mode,
    NoOpinion,
    Refuse,
    Routine,
    Run,
    ToolError,
    ToolResult,
    ToolSpec,
    Verdict,
    WorkspaceGrant,
)
from services.common.wording import Locale, load
from services.tools.shell.answer import Answer
from services.tools.shell.command import (
    MAX_COMMAND_BYTES,
    GuardLost,
    plain_plan,
    run_command,
    shell_program,
)
from services.tools.shell.guard.plan import Plan
from services.tools.shell.patterns import PatternLists
from services.tools.shell.sandbox.policy import PolicyRefused, is_sandboxed, sandbox_policy
from services.tools.shell.sandbox.shell_sandbox import ShellSandbox
from services.tools.tool_texts import ToolTexts

_log = structlog.get_logger(__name__)

NAME = "shell_run"
DEFAULT_TIMEOUT_SECONDS = 120
MAX_TIMEOUT_SECONDS = 900
# The command's own time, then ending it and answering.
_DEADLINE_SECONDS = MAX_TIMEOUT_SECONDS + 30


class ShellRun:
    """The tool.

    Args:
        sandbox: Of this host; probed before the first call.
    """

    name = NAME

    def __init__(self, sandbox: ShellSandbox) -> None:
        self._sandbox = sandbox
        self._texts = load("tools")
        self._said = ToolTexts(NAME)
        self._warned: set[str] = set()

    def spec(self, locale: Locale) -> ToolSpec:
        """Describe the tool in `locale`."""

        said = self._said
        return ToolSpec(
            name=NAME,
            description=said.description(locale),
            parameters={
                "type": "object",
                "properties": {
                    "command": said.parameter(locale, "command", type="string", minLength=1),
                    "timeout_s": said.parameter(locale, "timeout_s", type="number", exclusiveMinimum=0),
                },
                "required": ["command"],
                "additionalProperties": False,
            },
            label=said.of(locale, "label"),
            kind="change",
            effect="change",
            requires_approval=True,
            deadline_seconds=_DEADLINE_SECONDS,
            judges=True,
            prompt_snippet=said.of(locale, "snippet"),
            guidelines=(said.of(locale, "guideline"),),
            card=said.of(locale, "card"),
        )

    def offered_to(self, mode: Mode, settings: Mapping[str, Any]) -> bool:
        """Every agent gets it."""
        return True

    def prepare(self, arguments: Arguments) -> Arguments:
        """There are no older shapes."""
        return arguments

    async def judge(self, context: CallContext, arguments: Arguments) -> Verdict:
        """Deny and what cannot run here refuse; then the ask list, then the allow list (TLS-268)."""
        try:
            command, _ = self._arguments(context, arguments)
            self._check_sandbox(context)
        except ToolError as error:
            return Refuse(error.text)
        match = self._patterns(context.workspace).match(command)
        match match.verdict:
            case "deny":
                text = self._say(context, "error.shell.denied", pattern=match.pattern)
                return Refuse(text, rule=match.pattern)
            case "ask":
                reason = self._say(context, "shell.ask_reason", pattern=match.pattern)
                return Ask(reason, rule=match.pattern)
            case "allow":
                return Routine(rule=match.pattern)
            case None:
                return NoOpinion()

    async def run(self, run: Run) -> ToolResult:
        """Run the command; everything it started has ended when this returns.

        Raises:
            ToolError: It was refused, failed, or reached a limit.
        """
        context = run.context
        command, timeout = self._arguments(context, run.arguments)
        denied = self._patterns(context.workspace).match(command)
        if denied.verdict == "deny":
            text = self._say(context, "error.shell.denied", pattern=denied.pattern)
            raise ToolError(text, refused=True)
        self._check_sandbox(context)
        plan = await self._plan(context, command)
        answer = Answer(
            texts=self._texts,
            locale=context.locale,
            command=command,
            timeout=timeout,
            limits=context.workspace.limits,
            form=plan.form,
            writable=tuple(context.workspace.shell_write_paths),
            network=context.workspace.shell_network,
            ceiling=context.output_chars,
        )
        try:
            result = await run_command(plan, timeout=timeout, watcher=run.progress)
        except GuardLost:
            raise ToolError(self._say(context, "error.shell.guard_lost"), outcome="unknown") from None
        except OSError as error:
            text = self._say(context, "error.shell.cannot_start", problem=error.strerror or "")
            raise ToolError(text) from error
        return answer.of(result)

    def _arguments(self, context: CallContext, arguments: Arguments) -> tuple[str, float]:
        """The command and its seconds, checked here whatever was checked before (PIP-127)."""
        command = arguments.get("command")
        if not isinstance(command, str) or not command.strip():
            raise ToolError(self._say(context, "error.shell.no_command"))
        if "\0" in command:
            raise ToolError(self._say(context, "error.shell.nul"))
        try:
            size = len(os.fsencode(command))
        except UnicodeEncodeError:
            raise ToolError(self._say(context, "error.shell.not_text")) from None
        if size > MAX_COMMAND_BYTES:
            raise ToolError(self._say(context, "error.shell.too_long", size=size, limit=MAX_COMMAND_BYTES))
        timeout = arguments.get("timeout_s", DEFAULT_TIMEOUT_SECONDS)
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
            raise ToolError(self._say(context, "error.shell.timeout"))
        return command, min(timeout, MAX_TIMEOUT_SECONDS) if math.isfinite(timeout) else MAX_TIMEOUT_SECONDS

    def _check_sandbox(self, context: CallContext) -> None:
        """Refuse what must run sandboxed and cannot (TLS-284, TLS-321)."""
        if sys.platform != "linux":
            raise ToolError(self._say(context, "error.shell.not_linux"), refused=True)
        grant = context.workspace
        if not is_sandboxed(grant):
            return
        report = self._sandbox.report
        if report.form is None or (grant.shell_network and not report.keeps_network):
            reason = report.sentence(context.locale)
            raise ToolError(self._say(context, "error.shell.no_sandbox", reason=reason), refused=True)

    async def _plan(self, context: CallContext, command: str) -> Plan:
        grant = context.workspace
        if not await asyncio.to_thread(os.path.isdir, grant.root):
            raise ToolError(self._say(context, "error.shell.no_workspace", path=grant.root))
        # After `--`, so that a command that begins with a dash is not read as an option.
        plan = plain_plan(grant, (shell_program(), "-c", "--", command))
        if not is_sandboxed(grant):
            return plan
        try:
            policy = await asyncio.to_thread(
                sandbox_policy,
                grant,
                context.agent_id,
                hidden=self._sandbox.hidden,
                closed_ports=self._sandbox.closed_ports,
            )
            return await self._sandbox.confine(plan, policy)
        except PolicyRefused as refusal:
            values = {"reason": self._sandbox.report.sentence(context.locale), **refusal.values}
            raise ToolError(self._say(context, refusal.key, **values), refused=True) from None
        except OSError as error:
            text = self._say(context, "error.shell.cannot_start", problem=error.strerror or "")
            raise ToolError(text) from error

    def _patterns(self, grant: WorkspaceGrant) -> PatternLists:
        lists = PatternLists.of(ask=grant.ask_patterns, allow=grant.allow_patterns, deny=grant.deny_patterns)
        for pattern in lists.dropped:
            # Once, not with every call (TLS-270).
            if pattern not in self._warned:
                self._warned.add(pattern)
                _log.warning("shell_allow_pattern_dropped", pattern=pattern)
        return lists

    def _say(self, context: CallContext, key: str, **values: object) -> str:
        return self._texts.text(context.locale, key, **values)

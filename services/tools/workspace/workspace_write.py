"""The tool that writes whole text files."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.common.toolhost.contract import (
    Arguments,
    CallContext,
    Mode,
    NoOpinion,
    Refuse,
    Run,
    ToolError,
    ToolResult,
    ToolSpec,
    Verdict,
    text_result,
)
from services.common.wording import Locale
from services.tools.tool_texts import ToolTexts
from services.tools.workspace import arguments as given
from services.tools.workspace.batch import Attempts, being_cancelled
from services.tools.workspace.binding import bound, bound_state, check_bound
from services.tools.workspace.checks.checking import SyntaxChecks
from services.tools.workspace.explaining import difference, explained, say
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.interfaces import FileChanging, Target
from services.tools.workspace.names import quoted
from services.tools.workspace.seen import SeenFiles
from services.tools.workspace.text.kinds import NotText
from services.tools.workspace.text.marks import NO_MARKS, FileText, Marks, in_the_manner_of

FILES = 20


@dataclass(frozen=True, slots=True)
class _Item:
    path: str
    content: str


@dataclass(frozen=True, slots=True)
class _Planned:
    """One file of a call, looked at and allowed."""

    item: _Item
    target: Target
    content: bytes
    # The content was adapted to the marks of the file (PIP-071).
    adapted: Marks | None


class WorkspaceWrite:
    """``workspace_write(path, content, overwrite?)`` or ``workspace_write(files, overwrite?)``.

    Args:
        files: Replaces a file, and nothing else.
        seen: Knows what the conversation has read and written.
        checks: Looks for faults in what was written.
    """

    name = "workspace_write"

    def __init__(self, files: FileChanging, seen: SeenFiles, checks: SyntaxChecks) -> None:
        self._files = files
        self._seen = seen
        self._checks = checks
        self._texts = ToolTexts(self.name)

    def spec(self, locale: Locale) -> ToolSpec:
        """Describe the tool in `locale`."""
        texts = self._texts
        path = texts.parameter(locale, "path", type="string", minLength=1)
        content = texts.parameter(locale, "content", type="string")
        return ToolSpec(
            name=self.name,
            description=texts.description(locale),
            parameters={
                "type": "object",
                "properties": {
                    "path": path,
                    "content": content,
                    "files": texts.parameter(
                        locale,
                        "files",
                        type="array",
                        minItems=1,
                        maxItems=FILES,
                        items={
                            "type": "object",
                            "properties": {"path": path, "content": content},
                            "required": ["path", "content"],
                            "additionalProperties": False,
                        },
                    ),
                    "overwrite": texts.parameter(locale, "overwrite", type="boolean"),
                },
                "additionalProperties": False,
            },
            label=texts.of(locale, "label"),
            kind="change",
            effect="replace",
            requires_approval=True,
            judges=True,
            deadline_seconds=120,
            prompt_snippet=texts.of(locale, "snippet"),
            guidelines=(texts.of(locale, "guideline"),),
            card=texts.of(locale, "card"),
        )

    def offered_to(self, mode: Mode, settings: Mapping[str, Any]) -> bool:
        """To every agent."""
        return True

    def prepare(self, arguments: Arguments) -> Arguments:
        """There is no older shape."""
        return arguments

    async def judge(self, context: CallContext, arguments: Arguments) -> Verdict:
        """What a person would be asked about: the files as they are, and what would change.

        A call none of whose files could be written is refused before anybody is asked.
        """
        try:
            items, overwrite = self._items(arguments, context.locale)
        except ToolError as error:
            return Refuse(error.text)
        attempts = Attempts[_Planned]()
        states: dict[str, str] = {}
        for item in items:
            try:
                planned = await self._plan(item, overwrite, None, context)
            except ToolError as error:
                attempts.failed(error)
                continue
            attempts.succeeded(planned)
            states[item.path] = planned.target.state
            if planned.target.content is not None:
                await self._seen.keep(planned.target.state, planned.target.content)
        if not attempts.done:
            return Refuse(attempts.errors_text(context.locale))
        preview = await asyncio.to_thread(self._preview, attempts, context.locale)
        return NoOpinion(preview=preview, target_state=bound(states))

    async def run(self, run: Run) -> ToolResult:
        """Write the files, each whole or not at all; one that fails leaves the others written.

        Raises:
            ToolError: None could be written.
        """
        call, locale = run.context, run.context.locale
        items, overwrite = self._items(run.arguments, locale)
        attempts = Attempts[_Planned]()
        for item in items:
            if being_cancelled():
                attempts.left_out(item.path)
                continue
            try:
                approved = bound_state(run.target_state, item.path, locale)
                planned = await self._write(item, overwrite, approved, call)
            except ToolError as error:
                attempts.failed(error)
            except asyncio.CancelledError:
                attempts.left_out(item.path)
            else:
                attempts.succeeded(planned)
        return await self._result(attempts, call)

    def _items(self, arguments: Arguments, locale: Locale) -> tuple[Sequence[_Item], bool]:
        overwrite = given.switch(arguments, "overwrite", locale)
        single = "path" in arguments or "content" in arguments
        if single == ("files" in arguments):
            raise ToolError(self._texts.of(locale, "one_form"))
        objects: Sequence[Mapping[str, Any]] = (
            [arguments] if single else given.items(arguments, "files", locale, FILES)
        )
        items = [
            _Item(given.text(item, "path", locale), given.text(item, "content", locale)) for item in objects
        ]
        return items, overwrite

    async def _plan(self, item: _Item, overwrite: bool, approved: str | None, call: CallContext) -> _Planned:
        """Look at the file and decide whether it may be written.

        Raises:
            ToolError: It may not.
        """
        try:
            target = await self._files.look(call.workspace, item.path)
        except WorkspaceFault as fault:
            raise explained(fault, item.path, call.locale) from None
        await check_bound(approved, target, item.path, call, self._seen)
        if approved is None and target.exists:
            await self._check_seen(item, target, overwrite, call)
        content, adapted = await asyncio.to_thread(_bytes, item.content, target)
        return _Planned(item, target, content, adapted)

    async def _check_seen(self, item: _Item, target: Target, overwrite: bool, call: CallContext) -> None:
        """Nobody writes over what they have not seen (FLD-067)."""
        known = await self._seen.state_of(
            call.conversation_id, posixpath.join(call.workspace.root, target.path)
        )
        if known == target.state:
            return
        if known is None:
            if overwrite:
                return
            raise ToolError(self._texts.of(call.locale, "never_read", path=quoted(item.path)))
        before = await self._seen.content_of(known)
        changes = await asyncio.to_thread(difference, before, target.content, call.locale)
        text = self._texts.of(call.locale, "changed_since", path=quoted(item.path))
        raise ToolError(
            f"{text}\n{changes}",
            details={"path": target.path, "known": known, "now": target.state},
        )

    async def _write(self, item: _Item, overwrite: bool, approved: str | None, call: CallContext) -> _Planned:
        """Plan and write; planned anew when the file changed while this write waited for its turn."""
        for last in (False, False, True):
            planned = await self._plan(item, overwrite, approved, call)
            try:
                await self._files.change(call.workspace, item.path, _unless_changed(planned))
            except WorkspaceFault as fault:
                if fault.kind != "changed_meanwhile" or last:
                    raise explained(fault, item.path, call.locale) from None
            else:
                break
        return planned

    async def _result(self, attempts: Attempts[_Planned], call: CallContext) -> ToolResult:
        locale = call.locale
        if not attempts.done:
            raise attempts.error(locale)
        lines = [self._line(planned, locale) for planned in attempts.done]
        lines += attempts.failure_lines(locale)
        details: dict[str, Any] = {
            "files": [
                {
                    "path": planned.target.path,
                    "bytes": len(planned.content),
                    "created": not planned.target.exists,
                }
                for planned in attempts.done
            ],
            "failed": len(attempts.errors),
        }
        for planned in attempts.done:
            # In the file is what this conversation wrote, whatever was there before.
            await self._seen.saw(
                call.conversation_id,
                posixpath.join(call.workspace.root, planned.target.path),
                _hash(planned.content),
                planned.content,
            )
        if attempts.not_started:
            return text_result("\n".join(lines), details=details, is_error=True)
        report = await self._checks.check(
            [(planned.target.path, planned.content) for planned in attempts.done], locale
        )
        return text_result("\n".join([*lines, *report.lines]), details={**details, **report.details})

    def _line(self, planned: _Planned, locale: Locale) -> str:
        key = "replaced" if planned.target.exists else "created"
        line = self._texts.of(locale, key, path=quoted(planned.item.path), size=len(planned.content))
        return f"{line} {_kept(planned.adapted, locale)}" if planned.adapted else line

    def _preview(self, attempts: Attempts[_Planned], locale: Locale) -> str:
        parts = []
        for planned in attempts.done:
            path, size = quoted(planned.item.path), len(planned.content)
            if not planned.target.exists:
                parts.append(self._texts.of(locale, "preview_new", path=path, size=size))
                continue
            heading = self._texts.of(locale, "preview_replace", path=path, size=size)
            parts.append(f"{heading}\n{difference(planned.target.content, planned.content, locale)}")
        return "\n".join([*parts, *attempts.failure_lines(locale)])


def _bytes(text: str, target: Target) -> tuple[bytes, Marks | None]:
    """The bytes to write, in the manner of the file that is there (FLD-068)."""
    marks = NO_MARKS
    if target.content is not None:
        try:
            marks = FileText.decode(target.content).marks
        except NotText:
            marks = NO_MARKS
    plain = text.removeprefix("\ufeff") if marks.bom else text
    adapted = in_the_manner_of(plain, marks)
    changed = adapted != text or marks.bom
    return FileText(adapted, marks).encode(), marks if changed else None


def _kept(marks: Marks, locale: Locale) -> str:
    """Which marks of the file were kept against what was given."""
    return say(locale, "marks_kept", line_ends="CRLF" if marks.crlf else "LF")


def _unless_changed(planned: _Planned) -> Callable[[Target], bytes]:
    def make(now: Target) -> bytes:
        if (now.path, now.state) != (planned.target.path, planned.target.state):
            raise WorkspaceFault("changed_meanwhile", planned.item.path)
        return planned.content

    return make


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

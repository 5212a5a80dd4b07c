"""The tool that replaces exact passages of text files."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.common.toolhost import exact_json
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
from services.tools.workspace.batch import being_cancelled
from services.tools.workspace.binding import bound, bound_state, check_bound
from services.tools.workspace.checks.checking import SyntaxChecks
from services.tools.workspace.explaining import explained, say, with_more
from services.tools.workspace.faults import WorkspaceFault
from services.tools.workspace.interfaces import FileChanging, Target
from services.tools.workspace.names import quoted
from services.tools.workspace.seen import SeenFiles
from services.tools.workspace.text.diff import LINES, diff
from services.tools.workspace.text.edits import Edit, EditFault, apply
from services.tools.workspace.text.kinds import NotText
from services.tools.workspace.text.marks import FileText

EDITS = 20
_EDIT_FIELDS = frozenset({"path", "old", "new", "replace_all"})


@dataclass(frozen=True, slots=True)
class _Numbered:
    """One edit and its place in the call, from 1."""

    number: int
    path: str
    edit: Edit


@dataclass(slots=True)
class _FileEdits:
    """The edits of one file and what became of them."""

    path: str
    edits: list[_Numbered]
    target: Target | None = None
    before: str = ""
    after: FileText | None = None
    replaced: int = 0
    applied: int = 0
    as_crlf: bool = False
    errors: list[tuple[int, ToolError]] = field(default_factory=list)

    def fail(self, error: ToolError) -> None:
        """None of the edits applies."""
        self.errors = [(numbered.number, error) for numbered in self.edits]
        self.after = None
        self.applied = 0


class WorkspaceEdit:
    """``workspace_edit(edits)``, each ``{path, old, new, replace_all?}``.

    The single form ``{path, old, new, replace_all?}`` stays valid (TLS-053) as an older shape: it is
    accepted and appears in no description (PIP-122).

    Args:
        files: Replaces a file, and nothing else.
        seen: Is told what the conversation now knows.
        checks: Looks for faults in what was written.
    """

    name = "workspace_edit"

    def __init__(self, files: FileChanging, seen: SeenFiles, checks: SyntaxChecks) -> None:
        self._files = files
        self._seen = seen
        self._checks = checks
        self._texts = ToolTexts(self.name)

    def spec(self, locale: Locale) -> ToolSpec:
        """Describe the tool in `locale`."""
        texts = self._texts
        return ToolSpec(
            name=self.name,
            description=texts.description(locale),
            parameters={
                "type": "object",
                "properties": {
                    "edits": texts.parameter(
                        locale,
                        "edits",
                        type="array",
                        minItems=1,
                        maxItems=EDITS,
                        items={
                            "type": "object",
                            "properties": {
                                "path": texts.parameter(locale, "path", type="string", minLength=1),
                                "old": texts.parameter(locale, "old", type="string", minLength=1),
                                "new": texts.parameter(locale, "new", type="string"),
                                "replace_all": texts.parameter(locale, "replace_all", type="boolean"),
                            },
                            "required": ["path", "old", "new"],
                            "additionalProperties": False,
                        },
                    )
                },
                "required": ["edits"],
                "additionalProperties": False,
            },
            label=texts.of(locale, "label"),
            kind="change",
            effect="change",
            requires_approval=True,
            judges=True,
            prepares_arguments=True,
            deadline_seconds=120,
            prompt_snippet=texts.of(locale, "snippet"),
            guidelines=(texts.of(locale, "guideline"),),
            card=texts.of(locale, "card"),
        )

    def offered_to(self, mode: Mode, settings: Mapping[str, Any]) -> bool:
        """To agents that work on files (TLS-006)."""
        return mode == "work"

    def prepare(self, arguments: Arguments) -> Arguments:
        """One edit's own fields, and edits sent as JSON text, become the list of edits (PIP-122)."""
        if "edits" not in arguments and {"path", "old", "new"} <= set(arguments) <= _EDIT_FIELDS:
            return {"edits": [dict(arguments)]}
        edits = arguments.get("edits")
        if isinstance(edits, str):
            try:
                parsed = exact_json.loads(edits)
            except ValueError:
                return arguments
            if isinstance(parsed, list):
                return {**arguments, "edits": parsed}
        return arguments

    async def judge(self, context: CallContext, arguments: Arguments) -> Verdict:
        """What a person would be asked about: the files as they are, and what would change.

        A call none of whose edits applies is refused before anybody is asked.
        """
        try:
            files = self._files_of(arguments, context.locale)
        except ToolError as error:
            return Refuse(error.text)
        states: dict[str, str] = {}
        for file in files:
            try:
                target = await self._files.look(context.workspace, file.path)
            except WorkspaceFault as fault:
                file.fail(explained(fault, file.path, context.locale))
                continue
            await asyncio.to_thread(self._apply, file, target, context.locale)
            if file.applied:
                states[file.path] = target.state
                if target.content is not None:
                    await self._seen.keep(target.state, target.content)
        if not states:
            return Refuse(self._failure(files, context.locale).text)
        changes = await asyncio.to_thread(self._changes, files, context.locale)
        preview = [*changes, *self._failure_lines(files, context.locale)]
        return NoOpinion(preview="\n".join(preview), target_state=bound(states))

    async def run(self, run: Run) -> ToolResult:
        """Apply the edits, in order; one that fails leaves the others applied (TLS-232).

        Raises:
            ToolError: None applied.
        """
        call, locale = run.context, run.context.locale
        files = self._files_of(run.arguments, locale)
        not_started: list[str] = []
        for file in files:
            if being_cancelled():
                not_started.append(file.path)
                continue
            try:
                await self._edit(file, bound_state(run.target_state, file.path, locale), call)
            except ToolError as error:
                file.fail(error)
            except asyncio.CancelledError:
                not_started.append(file.path)
        return await self._result(files, not_started, call)

    def _files_of(self, arguments: Arguments, locale: Locale) -> Sequence[_FileEdits]:
        """The edits by file: those of one file are one change of it, in their order."""
        files: dict[str, _FileEdits] = {}
        for number, item in enumerate(given.items(arguments, "edits", locale, EDITS), 1):
            path = given.text(item, "path", locale)
            edit = Edit(
                given.text(item, "old", locale),
                given.text(item, "new", locale),
                given.switch(item, "replace_all", locale),
            )
            key = posixpath.normpath(path) if path else path
            files.setdefault(key, _FileEdits(path, [])).edits.append(_Numbered(number, path, edit))
        return list(files.values())

    async def _edit(self, file: _FileEdits, approved: str | None, call: CallContext) -> None:
        def make(now: Target) -> bytes | None:
            if approved is not None and now.state != approved:
                file.target = now
                raise _Unapproved
            self._apply(file, now, call.locale)
            return file.after.encode() if file.applied and file.after is not None else None

        try:
            await self._files.change(call.workspace, file.path, make)
        except WorkspaceFault as fault:
            raise explained(fault, file.path, call.locale) from None
        except _Unapproved:
            assert file.target is not None
            await check_bound(approved, file.target, file.path, call, self._seen)

    def _apply(self, file: _FileEdits, target: Target, locale: Locale) -> None:
        """Work out what the file becomes; runs anew when the file changed while it was replaced."""
        file.target, file.errors, file.applied, file.replaced, file.after = target, [], 0, 0, None
        if not target.exists:
            file.fail(explained(WorkspaceFault("missing", file.path), file.path, locale))
            return
        if target.content is None:
            file.fail(ToolError(self._texts.of(locale, "too_large", path=quoted(file.path))))
            return
        try:
            text = FileText.decode(target.content)
        except NotText as problem:
            file.fail(explained(problem, file.path, locale))
            return
        file.before = text.text
        for numbered in file.edits:
            try:
                edited = apply(text, numbered.edit)
            except EditFault as fault:
                error = self._texts.of(
                    locale, f"fault.{fault.kind}", path=quoted(numbered.path), count=fault.count
                )
                file.errors.append((numbered.number, ToolError(error)))
                continue
            text = FileText(edited.text, text.marks)
            file.applied += 1
            file.replaced += edited.replaced
            file.as_crlf = file.as_crlf or edited.as_crlf
        file.after = text

    async def _result(
        self, files: Sequence[_FileEdits], not_started: Sequence[str], call: CallContext
    ) -> ToolResult:
        locale = call.locale
        changed = [file for file in files if file.applied and file.after is not None]
        cancelled = (
            [say(locale, "batch.cancelled", paths=", ".join(map(quoted, not_started)))] if not_started else []
        )
        if not changed:
            failure = self._failure(files, locale)
            failure.text = "\n".join([*([failure.text] if failure.text else []), *cancelled])
            raise failure
        changes = await asyncio.to_thread(self._changes, changed, locale)
        lines = [*changes, *self._failure_lines(files, locale), *cancelled]
        details: dict[str, Any] = {
            "files": [
                {"path": file.target.path, "edits": file.applied, "replaced": file.replaced}
                for file in changed
                if file.target is not None
            ],
            "failed": sum(len(file.errors) for file in files),
        }
        contents: list[tuple[str, bytes]] = []
        for file in changed:
            assert file.after is not None
            assert file.target is not None
            content = file.after.encode()
            contents.append((file.target.path, content))
            await self._seen.saw(
                call.conversation_id,
                posixpath.join(call.workspace.root, file.target.path),
                hashlib.sha256(content).hexdigest(),
                content,
            )
        if not_started:
            return text_result("\n".join(lines), details=details, is_error=True)
        report = await self._checks.check(contents, locale)
        return text_result("\n".join([*lines, *report.lines]), details={**details, **report.details})

    def _changes(self, files: Sequence[_FileEdits], locale: Locale) -> list[str]:
        """What was edited, with a diff of at most `LINES` lines over all files (TLS-229)."""
        lines: list[str] = []
        left = LINES
        for file in files:
            if not file.applied or file.after is None:
                continue
            lines.append(self._texts.of(locale, "edited", path=quoted(file.path), count=file.replaced))
            if file.as_crlf:
                lines.append(self._texts.of(locale, "as_crlf"))
            changes = diff(file.before, file.after.text, limit=left)
            left -= len(changes.lines)
            shown = with_more(changes.lines, changes.more, locale)
            if shown:
                lines.append(shown)
        return lines

    def _failure_lines(self, files: Sequence[_FileEdits], locale: Locale) -> list[str]:
        numbered = sorted((error for file in files for error in file.errors), key=lambda error: error[0])
        if sum(len(file.edits) for file in files) == 1:
            return [error.text for _, error in numbered]
        return [say(locale, "batch.failed", number=number, text=error.text) for number, error in numbered]

    def _failure(self, files: Sequence[_FileEdits], locale: Locale) -> ToolError:
        errors = [error for file in files for _, error in file.errors]
        return ToolError(
            "\n".join(self._failure_lines(files, locale)),
            details=errors[0].details if len(errors) == 1 else {},
            refused=bool(errors) and all(error.refused for error in errors),
        )


class _Unapproved(Exception):
    """The file is not as it was when a person was asked."""

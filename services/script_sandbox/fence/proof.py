"""Proving a form of the fence by standing behind it and trying to get out (SCR-253)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from services.common.confinement import kernel
from services.common.confinement.syscalls import ARCHITECTURES
from services.common.wording import Locale, load
from services.script_sandbox.fence.forms import FORMS, Form
from services.script_sandbox.fence.launch import TRY
from services.script_sandbox.fence.launcher import NoInterpreter, fence_plan, write_launcher
from services.script_sandbox.limits import Limits

_SECONDS = 30.0
_MAX_REASON = 200

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Shortcoming:
    """Why a form is not in use: a catalogue key below `fence.why` and its values."""

    key: str
    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, locale: Locale) -> str:
        """The reason in `locale`."""
        return load("script_sandbox").text(locale, f"fence.why.{self.key}", **self.values)


@dataclass(frozen=True, slots=True)
class Fence:
    """Which fence holds here.

    Attributes:
        form: The form in use; None when scripts are refused.
        launcher: The program that starts a worker behind it; None without a form.
        shortcomings: For each form tried and not in use, why.
    """

    form: Form | None
    launcher: Path | None = None
    shortcomings: Mapping[Form, Shortcoming] = field(default_factory=dict)

    def sentence(self, locale: Locale) -> str:
        """For the owner: what is in force, and what is missing."""
        texts = load("script_sandbox")
        parts = [texts.text(locale, f"fence.report.{self.form or 'none'}")]
        parts += [
            texts.text(locale, "fence.report.not_used", form=form, reason=reason.text(locale))
            for form, reason in self.shortcomings.items()
        ]
        return " ".join(parts)


async def prove_fence(folder: Path, limits: Limits, *, forms: Sequence[Form] = FORMS) -> Fence:
    """Try the forms, best first, until one holds in every point.

    Args:
        folder: The service's own, for the program that starts workers.
        limits: Of scripts.
        forms: The forms to try.
    """
    shortcomings: dict[Form, Shortcoming] = {}
    for form in forms:
        shortcoming, launcher = await _try_form(form, folder, limits)
        if shortcoming is None:
            _log.info("script_fence_proven", form=form)
            return Fence(form, launcher, shortcomings)
        _log.warning("script_fence_not_used", form=form, reason=shortcoming.text("en"))
        shortcomings[form] = shortcoming
    return Fence(None, None, shortcomings)


async def _try_form(form: Form, folder: Path, limits: Limits) -> tuple[Shortcoming | None, Path | None]:
    if sys.platform != "linux":
        return Shortcoming("not_linux"), None
    if kernel.machine() not in ARCHITECTURES:
        return Shortcoming("architecture", {"machine": kernel.machine()}), None
    try:
        launcher = write_launcher(await fence_plan(form, limits), folder)
        process = await asyncio.create_subprocess_exec(
            *(str(launcher), TRY, str(os.getpid())),
            env={},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except (NoInterpreter, OSError) as error:
        return Shortcoming("refused", {"reason": str(error)[:_MAX_REASON]}), None
    try:
        printed, said = await asyncio.wait_for(process.communicate(), _SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return Shortcoming("refused", {"reason": "no answer"}), None
    try:
        through = json.loads(printed)
    except ValueError:
        lines = said.decode("utf-8", "replace").strip().splitlines() or [f"exit code {process.returncode}"]
        return Shortcoming("refused", {"reason": lines[-1][:_MAX_REASON]}), None
    if through:
        return Shortcoming("leaks", {"names": ", ".join(through)}), None
    return None, launcher

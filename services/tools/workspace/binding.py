"""Binding what a person approves to the state of the files it was approved for (FLD-022)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from services.common.toolhost import exact_json
from services.common.toolhost.contract import CallContext, ToolError
from services.common.wording import Locale
from services.tools.workspace.explaining import difference, say
from services.tools.workspace.interfaces import ABSENT, Target
from services.tools.workspace.names import quoted
from services.tools.workspace.seen import SeenFiles


def bound(states: Mapping[str, str]) -> str:
    """The states of the files of a call, by path as it was written."""
    return exact_json.dumps(states) if states else ""


def bound_state(target_state: str, path: str, locale: Locale) -> str | None:
    """The state that was approved for `path`; None when nobody was asked about it.

    Raises:
        ToolError: What came back is not what was handed out, or says nothing of this file.
    """
    if not target_state:
        return None
    try:
        states = exact_json.loads_object(target_state)
    except ValueError:
        states = {}
    state = states.get(path)
    if not isinstance(state, str):
        # It could not be written when the person was asked, so nobody has approved its state.
        raise ToolError(say(locale, "error.not_approved", path=quoted(path)))
    return state


async def check_bound(
    approved: str | None, now: Target, path: str, call: CallContext, seen: SeenFiles
) -> None:
    """Check that the file is as it was when a person was asked.

    Raises:
        ToolError: It is not; with what has changed.
    """
    if approved is None or approved == now.state:
        return
    before = await seen.content_of(approved)
    if approved == ABSENT:
        before = b""
    after = now.content if now.exists else b""
    changes = await asyncio.to_thread(difference, before, after, call.locale)
    raise ToolError(
        say(call.locale, "error.changed_since_approval", path=quoted(path)) + "\n" + changes,
        details={"path": now.path, "approved": approved, "now": now.state},
    )

"""Tokens of tools whose effect cannot be taken back: first a preview, then the act (PIP-091).

Judging a call makes its preview and a token; running it needs that token. It holds for one call
with the very arguments that were judged, for ten minutes, and for the life of this process: after a
restart the call goes back to its preview.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

from services.common.toolhost import exact_json
from services.common.toolhost.contract import Arguments, CallContext, Run, ToolError
from services.common.wording import load

TOKEN_SECONDS = 600
_LONGEST_TOKEN = 200


class Phases:
    """Gives and checks the tokens of one tool.

    Args:
        tool: Its name.
        clock: Seconds that only grow.
    """

    def __init__(self, tool: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tool = tool
        self._clock = clock
        self._key = secrets.token_bytes(32)

    def token(self, context: CallContext, arguments: Arguments) -> str:
        """For the verdict on a call, beside its preview."""
        until = int(self._clock() + TOKEN_SECONDS)
        return f"{until}.{self._signature(until, context, arguments)}"

    def check(self, run: Run) -> None:
        """Return when `run` may act: before anything that has an effect.

        Raises:
            ToolError: The token is missing, of another call or other arguments, or too old.
        """
        until, _, signature = run.token[:_LONGEST_TOKEN].partition(".")
        if until.isascii() and until.isdigit():
            expected = self._signature(int(until), run.context, run.arguments)
            if hmac.compare_digest(signature.encode(), expected.encode()) and self._clock() <= int(until):
                return
        raise ToolError(load("common").text(run.context.locale, "toolhost.no_first_phase", tool=self._tool))

    def _signature(self, until: int, context: CallContext, arguments: Arguments) -> str:
        bound = exact_json.dumps(
            {
                "tool": self._tool,
                "until": until,
                "agent": context.agent_id,
                "conversation": context.conversation_id,
                "call": context.call_id,
                "arguments": hashlib.sha256(exact_json.dumps(arguments).encode()).hexdigest(),
            }
        )
        return hmac.new(self._key, bound.encode(), hashlib.sha256).hexdigest()

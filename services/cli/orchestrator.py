"""The running orchestrator, called as the owner at the machine."""

from __future__ import annotations

import os
from pathlib import Path

from services.cli.home import Layout
from services.cli.texts import language, texts
from services.common.rpc import DirectedChannel, connect
from services.common.start import StartError


def channel() -> DirectedChannel:
    """A channel with the command line's own token; the caller closes it.

    It leads to ``MY_AGENT_ORCHESTRATOR_ADDRESS`` where a deployment sets that, else to the crew that
    runs in the home.

    Raises:
        StartError: No crew is running in this home, or the token is missing.
    """
    layout = Layout.from_environment(os.environ)
    address = os.environ.get("MY_AGENT_ORCHESTRATOR_ADDRESS", "").strip()
    if not address:
        address = layout.socket("orchestrator")
        if not os.path.exists(address.removeprefix("unix:")):
            raise StartError("error.send.not_running", catalogue=texts(), home=layout.home)
    given = os.environ.get("MY_AGENT_SECRETS_DIR", "").strip()
    folder = Path(given) if given else layout.secrets("cli")
    return connect(address, caller="cli", called="orchestrator", secrets_dir=folder)


def spoken() -> tuple[tuple[str, str], ...]:
    """Metadata that asks for answers in the language of the command line."""
    return (("accept-language", language()),)

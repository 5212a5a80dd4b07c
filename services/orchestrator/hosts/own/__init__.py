"""Tools the orchestrator runs itself."""

from services.orchestrator.hosts.own.ask_user import AskUser
from services.orchestrator.hosts.own.progress_note import ProgressNote

# The host of these tools, as it is named.
OWN_HOST = "crew"

__all__ = ["OWN_HOST", "AskUser", "ProgressNote"]

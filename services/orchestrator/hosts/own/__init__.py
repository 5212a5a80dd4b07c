"""Tools the orchestrator runs itself."""

from services.orchestrator.hosts.own.ask_user import AskUser
from services.orchestrator.hosts.own.progress_note import ProgressNote

__all__ = ["AskUser", "ProgressNote"]

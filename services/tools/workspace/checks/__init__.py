"""Looking for faults in what was just written, in languages that can be checked (PIP-080)."""

from services.tools.workspace.checks.checking import Report, SyntaxChecks

__all__ = ["Report", "SyntaxChecks"]

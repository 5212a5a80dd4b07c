"""The language of scripts: what may be said, checked whole before anything runs (script.md, 10)."""

from services.script_sandbox.dialect.check import CheckedScript, check_script
from services.script_sandbox.dialect.refusal import Refused

__all__ = ["CheckedScript", "Refused", "check_script"]

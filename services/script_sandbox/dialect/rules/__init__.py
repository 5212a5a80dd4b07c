"""The rules of the language, one table from a construct to what holds for it.

A construct without an entry is not in the language. An empty entry means that it is, as it stands.
"""

from services.script_sandbox.dialect.rules.table import RULES

__all__ = ["RULES"]

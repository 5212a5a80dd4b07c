"""Holding a tool's output to the number of characters a model is given of it (tools.md, section 6).

An output within the ceiling is untouched. JSON keeps its keys and numbers and loses the ends of
arrays and the middles of strings; everything else is cut, marked with exactly what is missing.
"""

from services.common.ceiling.limit import Cut, Limited, limit

__all__ = ["Cut", "Limited", "limit"]

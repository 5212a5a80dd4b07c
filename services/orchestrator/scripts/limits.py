"""The numbers of script.md, section 18, that the orchestrator itself holds a script to.

No configuration widens them. Lengths are in characters (code points), times in seconds.
"""

from __future__ import annotations

# Tool calls and questions of one script.
MOST_CALLS = 25
MOST_QUESTIONS = 10
MOST_LOOKUPS = 40

BATCH_ITEMS = 10
BATCH_AT_ONCE = 4

SCRIPT_CHARS = 20_000
ARGUMENT_CHARS = 100_000
PRINTED_CHARS = 60_000

LOOKUP_CHARS = 1_000
SEARCH_MOST = 10
SEARCH_LINE_CHARS = 200
DESCRIBE_CHARS = 2_000

QUESTION_CHARS = 20_000
FEWEST_LABELS, MOST_LABELS = 2, 20
LABEL_CHARS = 100
SUMMARY_MOST = 4_000

KEY_CHARS = 200
VALUE_CHARS = 65_536
STORE_CHARS = 262_144

OWN_SECONDS = 60.0
TOTAL_SECONDS = 300.0

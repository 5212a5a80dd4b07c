"""What must be true when all is over, read from the database and the disk."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.chaos.load import Record, Sent
from tests.chaos.model import LINES_FILE, fault_of, written_file

CHANGING = ("workspace_write", "shell_run")
Row = dict[str, Any]


@dataclass
class Aftermath:
    """The whole state of a crew that has become quiet."""

    messages: dict[str, list[Row]]
    runs: list[Row]
    approvals: list[Row]
    audit: list[Row]
    workspace: Path
    lines: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, url: str, workspace: Path) -> Aftermath:
        """Read everything.

        Args:
            url: Of the database, for a role that may read all of it.
            workspace: Of the agent.
        """
        with psycopg.connect(url, row_factory=dict_row) as connection:
            logs: dict[str, list[Row]] = defaultdict(list)
            for row in connection.execute("select * from messages order by conversation_id, seq"):
                logs[str(row["conversation_id"])].append(row)
            return cls(
                dict(logs),
                connection.execute("select * from runs order by n").fetchall(),
                connection.execute("select * from approvals order by created_at").fetchall(),
                connection.execute("select * from audit.calls order by id").fetchall(),
                workspace,
                Counter(_read(workspace / LINES_FILE).split()),
            )

    def effects(self, message: Sent) -> int:
        """How often the change that a message ordered was made."""
        if message.kind == "append":
            return self.lines[message.token]
        return 1 if (self.workspace / written_file(message.token)).exists() else 0

    def calls(self) -> Iterator[tuple[str, Row, Row | None]]:
        """Every stored call with its conversation and its result."""
        for conversation_id, log in self.messages.items():
            results = {row["tool_call_id"]: row for row in log if row["role"] == "tool"}
            for row in log:
                for call in row["tool_calls"] or ():
                    yield conversation_id, call, results.get(call["id"])


def broken(after: Aftermath, record: Record, violations: str) -> list[str]:
    """Every promise that was not kept, one sentence each."""
    return [
        *_lost(after, record),
        *_effects(after, record),
        *_logs(after),
        *(f"a strict provider refused a prompt: {line}" for line in violations.splitlines()),
        *_unfinished(after),
        *_unrecorded(after),
        *_decisions(after, record),
        *(f"an unexpected answer: {each}" for each in record.unexpected),
    ]


def _lost(after: Aftermath, record: Record) -> Iterator[str]:
    """No accepted message is lost, and none is there twice."""
    stored: Counter[str] = Counter()
    for log in after.messages.values():
        for row in log:
            if row["author"] == "person":
                stored.update(re.findall(r"^order \w+ (\w+)$", row["content"], re.MULTILINE))
    for message in record.sent.values():
        count = stored[message.token]
        least = 1 if message.accepted and message.cleared == "no" else 0
        most = 0 if message.cleared == "yes" and message.attempts == 1 else 1
        if not least <= count <= most:
            yield f"{message} is in the log {count} times"


def _effects(after: Aftermath, record: Record) -> Iterator[str]:
    """Nothing ran twice, what is said to have run did, and what is said not to have did not."""
    results = {_token(call): (call, result) for _, call, result in after.calls() if call["name"] in CHANGING}
    approvals = {row["tool_call_id"]: row["status"] for row in after.approvals}
    for message in record.sent.values():
        if message.kind not in {"write", "append"}:
            continue
        count = after.effects(message)
        call, result = results.get(message.token, (None, None))
        if count > 1:
            yield f"{message} took effect {count} times"
        elif count and call is None:
            yield f"{message} took effect without a stored call"
        if call is None or result is None:
            continue
        if not result["is_error"] and count == 0:
            yield f"{message} is said to be done and is not"
        if approvals.get(call["id"]) in {"denied", "expired"} and count:
            yield f"{message} took effect although it was {approvals[call['id']]}"


def _logs(after: Aftermath) -> Iterator[str]:
    """Every log is acceptable to a strict provider, numbered without gaps."""
    waiting = {str(row["conversation_id"]) for row in after.approvals if row["status"] == "pending"}
    for conversation_id, log in after.messages.items():
        if [row["seq"] for row in log] != list(range(1, len(log) + 1)):
            yield f"the log of {conversation_id} has gaps"
        shown: list[Row] = [{"role": "system"}]
        shown += [
            {"role": row["role"], "tool_call_id": row["tool_call_id"], "tool_calls": row["tool_calls"]}
            for row in log
        ]
        # As if the person spoke next.
        fault = fault_of([*shown, {"role": "user"}])
        if fault and conversation_id not in waiting:
            yield f"the log of {conversation_id} breaks the protocol: {fault}"


def _unfinished(after: Aftermath) -> Iterator[str]:
    """Every turn ended, paused with a request that waits, or was closed."""
    waiting = {row["run_id"] for row in after.approvals if row["status"] == "pending"}
    last: dict[str, Row] = {}
    for run in after.runs:
        last[str(run["conversation_id"])] = run
        if run["status"] == "running" or (run["status"] == "awaiting_approval" and run["id"] not in waiting):
            yield f"run {run['id']} is left {run['status']}"
        elif run["finished_at"] is None and run["status"] != "awaiting_approval":
            yield f"run {run['id']} is {run['status']} and has no end"
    for conversation_id, log in after.messages.items():
        end = log[-1]
        answered = end["role"] == "assistant" and not end["tool_calls"]
        if last[conversation_id]["status"] == "done" and not answered:
            yield f"the last turn of {conversation_id} is done and its log ends with a {end['role']} message"


def _unrecorded(after: Aftermath) -> Iterator[str]:
    """Every call that changed something has one reason in the audit trail, from before it ran."""
    allowed: dict[str, list[int]] = defaultdict(list)
    ended: dict[str, list[int]] = defaultdict(list)
    for row in after.audit:
        if row["event"] in {"allowed", "ended"}:
            (allowed if row["event"] == "allowed" else ended)[row["call_id"]].append(row["id"])
    changing = {call["id"]: _token(call) for _, call, _ in after.calls() if call["name"] in CHANGING}
    for call_id, places in ended.items():
        if call_id in changing and not (allowed[call_id] and min(allowed[call_id]) < min(places)):
            yield f"call {call_id} ended without a recorded reason before"
    for call_id, token in changing.items():
        happened = after.lines[token] or (after.workspace / written_file(token)).exists()
        if len(allowed[call_id]) > 1:
            yield f"call {call_id}, which is not repeatable, was let through {len(allowed[call_id])} times"
        if happened and not allowed[call_id]:
            yield f"call {call_id} took effect without a recorded reason"


def _decisions(after: Aftermath, record: Record) -> Iterator[str]:
    """A decision that was confirmed stands."""
    statuses = {str(row["id"]): row["status"] for row in after.approvals}
    for approval_id, approve in record.decided.items():
        if statuses.get(approval_id) != ("approved" if approve else "denied"):
            yield f"approval {approval_id} was confirmed as {approve} and is {statuses.get(approval_id)}"


def _token(call: Row) -> str:
    arguments = json.loads(call["arguments"])
    found = re.search(r"\bp\d+n\d+\b", arguments.get("command") or arguments.get("path") or "")
    return found[0] if found else ""


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""

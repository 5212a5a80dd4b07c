/** Messages and conversations for tests, complete as the server sends them. */

import type { Approval, Conversation, Message, Run, RunStep, ToolResult } from "../src/api/contract";

export function message(seq: number, values: Partial<Message> = {}): Message {
  return {
    id: 1000 + seq,
    seq,
    role: "user",
    content: `message ${seq}`,
    tool_calls: [],
    tool_call_id: null,
    name: null,
    provider: null,
    model: null,
    cost_usd: null,
    prompt_tokens: null,
    completion_tokens: null,
    cached_tokens: null,
    reasoning_tokens: null,
    created_at: "2026-03-01T10:00:00.000Z",
    details: {},
    is_error: false,
    context: null,
    author: "person",
    cost_estimated: false,
    calls: [],
    received_chars: null,
    printed_chars: null,
    ...values,
  };
}

export function conversation(values: Partial<Conversation> = {}): Conversation {
  return {
    id: "c1",
    agent_id: "default",
    channel: "web",
    title: "A title",
    created_at: "2026-03-01T10:00:00.000Z",
    updated_at: "2026-03-01T10:00:00.000Z",
    autonomous: false,
    skills: [],
    auto_approve: [],
    grants: [],
    approval_ttl_seconds: null,
    cost_cap_usd: 0.5,
    spent_usd: 0,
    unknown_cost_calls: 0,
    over_budget: false,
    forked_from: null,
    running: false,
    queued: [],
    pending_approval: null,
    messages: [],
    has_earlier: false,
    ...values,
  };
}

export function approval(values: Partial<Approval> = {}): Approval {
  return {
    id: "a1",
    conversation_id: "c1",
    agent_id: "default",
    kind: "tool",
    tool: "shell_run",
    tool_call_id: "call-1",
    arguments: { command: "ls" },
    reason: "",
    options: [],
    answer: null,
    status: "pending",
    created_at: "2026-03-01T10:00:00.000Z",
    expires_at: "2026-03-01T10:10:00.000Z",
    decided_at: null,
    summary: "Run ls",
    preview: "",
    run_id: "r1",
    may_always: true,
    always_allows: "workspace_write",
    review: null,
    delivery: "delivered",
    decided_by: null,
    ...values,
  };
}

export function result(values: Partial<ToolResult> = {}): ToolResult & { type: "tool_result" } {
  return {
    type: "tool_result",
    id: "call-1",
    name: "shell_run",
    ok: true,
    output: "done",
    ms: 5,
    cost_usd: null,
    calls: [],
    received_chars: null,
    printed_chars: null,
    shortened: null,
    original_chars: null,
    ...values,
  };
}

export function step(index: number, values: Partial<RunStep> = {}): RunStep {
  return {
    kind: "tool",
    index,
    started_at: "2026-03-01T10:00:00.000Z",
    ms: null,
    cost_usd: null,
    cost_estimated: null,
    route: null,
    first_token_ms: null,
    prompt_tokens: null,
    completion_tokens: null,
    cached_tokens: null,
    reasoning_tokens: null,
    error: null,
    next_route: null,
    moved: [],
    name: null,
    arguments: {},
    ok: null,
    output: null,
    tool_call_id: null,
    verdict: null,
    shortened: null,
    original_chars: null,
    text: null,
    ...values,
  };
}

export function run(id: string, values: Partial<Run> = {}): Run {
  return {
    id,
    agent_id: "default",
    source: "chat",
    conversation_id: "c1",
    status: "running",
    summary: "",
    after_seq: 0,
    started_at: "2026-03-01T10:00:00.000Z",
    finished_at: null,
    cost_usd: 0,
    unknown_cost_calls: 0,
    steps: [],
    ...values,
  };
}

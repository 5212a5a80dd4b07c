/** The routes of the Crew API that this page uses, one function each. */

import type {
  Agent,
  AgentPrompt,
  Approval,
  AuditEntry,
  BudgetsReply,
  ConnectionsReply,
  Conversation,
  CreatedToken,
  ForkConversationReply,
  HealthReply,
  ListNotificationsReply,
  MarkNotificationsReadReply,
  MessageHit,
  Run,
  SettingsReply,
  StatsReply,
  StopReply,
  TokenInfo,
  Tool,
  ToolStatsReply,
} from "./contract";
import { json, path, request } from "./http";

export interface Session {
  mode: "owner" | "none";
  authenticated: boolean;
  kind: "session" | "token" | "local" | null;
  scopes: string[];
  expires_at: string | null;
}

export const PAGE_OF_MESSAGES = 50;

export const auth = {
  session: () => json<Session>("/api/auth/session"),
  login: (password: string) => json<undefined>("/api/auth/login", { method: "POST", body: { password } }),
  setUp: (setup_token: string, password: string) =>
    json<undefined>("/api/auth/setup", { method: "POST", body: { setup_token, password } }),
  logout: () => json<undefined>("/api/auth/logout", { method: "POST", body: {} }),
  tokens: () => json<TokenInfo[]>("/api/auth/tokens"),
  createToken: (name: string, scopes: string[], expires_in_days: number | null) =>
    json<CreatedToken>("/api/auth/tokens", {
      method: "POST",
      body: expires_in_days === null ? { name, scopes } : { name, scopes, expires_in_days },
    }),
  deleteToken: (id: string) => json<undefined>(path(["auth", "tokens", id]), { method: "DELETE" }),
  endOtherSessions: () => json<undefined>("/api/auth/sessions", { method: "DELETE" }),
};

export type ConversationPatch = Partial<
  Pick<Conversation, "title" | "autonomous" | "cost_cap_usd" | "auto_approve">
>;

export const conversations = {
  list: () => json<Conversation[]>(path(["conversations"])),
  create: () => json<Conversation>("/api/conversations", { method: "POST", body: {} }),
  get: (id: string, beforeSeq?: number, limit = PAGE_OF_MESSAGES) =>
    json<Conversation>(path(["conversations", id], { limit, before_seq: beforeSeq })),
  update: (id: string, patch: ConversationPatch) =>
    json<Conversation>(path(["conversations", id]), { method: "PATCH", body: patch }),
  remove: (id: string) => json<undefined>(path(["conversations", id]), { method: "DELETE" }),
  fork: (id: string, before_message_id: number) =>
    json<ForkConversationReply>(path(["conversations", id, "fork"]), {
      method: "POST",
      body: { before_message_id },
    }),
};

export const messages = {
  search: (q: string, agent_id: string | undefined, signal: AbortSignal) =>
    json<MessageHit[]>(path(["messages", "search"], { q, agent_id }), { signal }),
};

export const turns = {
  send: (id: string, text: string, request_id: string, signal: AbortSignal) =>
    request(path(["conversations", id, "messages"]), {
      method: "POST",
      body: { text, request_id },
      signal,
    }),
  watch: (id: string, lastEventId: string, signal: AbortSignal) =>
    request(path(["conversations", id, "turn"]), {
      signal,
      headers: lastEventId ? { "Last-Event-ID": lastEventId } : {},
    }),
  stop: (id: string, signal: AbortSignal) =>
    json<StopReply>(path(["conversations", id, "stop"]), { method: "POST", body: {}, signal }),
  decide: (approval: Approval, approve: boolean, always: boolean, signal?: AbortSignal) =>
    request(path(["conversations", approval.conversation_id, "approvals", approval.id]), {
      method: "POST",
      body: { approve, always },
      signal,
    }),
  answer: (approval: Approval, answer: string, signal?: AbortSignal) =>
    request(path(["conversations", approval.conversation_id, "approvals", approval.id, "answer"]), {
      method: "POST",
      body: { answer },
      signal,
    }),
};

export const approvals = {
  decided: (limit: number) => json<Approval[]>(path(["approvals"], { limit })),
  waiting: () => json<Approval[]>("/api/approvals/waiting"),
};

export const runs = {
  list: (query: { agent_id?: string; conversation_id?: string; status?: string; limit: number }) =>
    json<Run[]>(path(["activity", "runs"], query)),
  get: (id: string) => json<Run>(path(["activity", "runs", id])),
  stream: (signal: AbortSignal) => request("/api/activity/stream", { signal }),
  /** The whole run as a file; results over 2,000 characters are cut unless `full`. */
  trajectory: (id: string, format: "json" | "md", full: boolean) =>
    request(path(["activity", "runs", id, "trajectory"], { format, full: full ? 1 : null })),
};

export interface AuditQuery {
  tool?: string;
  agent_id?: string;
  /** YYYY-MM-DD. */
  day?: string;
  text?: string;
  /** "true": also calls that only read. */
  reads?: string;
}

export const audit = {
  list: (query: AuditQuery & { limit: number; before?: string }) =>
    json<AuditEntry[]>(path(["audit"], { ...query })),
};

export const notifications = {
  list: (limit: number) => json<ListNotificationsReply>(path(["notifications"], { limit })),
  markRead: (ids: readonly string[]) =>
    json<MarkNotificationsReadReply>("/api/notifications/read", { method: "POST", body: { ids } }),
  confirm: (ids: readonly string[]) =>
    json<undefined>("/api/notifications/confirm", { method: "POST", body: { ids, surface: "web" } }),
};

export const budgets = {
  list: () => json<BudgetsReply>("/api/budgets"),
  /** For the rest of the day, past the budgets that are spent. */
  goOn: (go_on: boolean) => json<BudgetsReply>("/api/budgets/go-on", { method: "POST", body: { go_on } }),
};

export const stats = {
  tools: (days: number) => json<ToolStatsReply>(path(["stats", "tools"], { days })),
};

export const system = {
  health: (signal?: AbortSignal) => json<HealthReply>("/api/health", { signal }),
  connections: () => json<ConnectionsReply>("/api/connections"),
  settings: () => json<SettingsReply>("/api/settings"),
  stats: () => json<StatsReply>("/api/stats"),
};

export const crew = {
  agents: () => json<Agent[]>("/api/agents"),
  agent: (id: string) => json<Agent>(path(["agents", id])),
  prompt: (id: string) => json<AgentPrompt>(path(["agents", id, "prompt"])),
  tools: () => json<Tool[]>("/api/tools"),
};

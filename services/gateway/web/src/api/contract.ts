// Written by scripts/contract_types.py from protos/crew/v1. Do not edit.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface ActivitySnapshot {
  runs: Run[];
}

export interface Agent {
  id: string;
  name: string;
  description: string;
  mode: string;
  master: boolean;
  routes: string[];
  tools: string[];
  workspace: string;
  max_steps: number;
  cost_cap_usd: number;
  autonomous: boolean;
  persona_names: string[];
  warnings: string[];
  escalation_route: string | null;
}

export interface AgentCacheStats {
  agent_id: string;
  prompt_tokens: number;
  cached_tokens: number;
}

export interface AgentPrompt {
  prompt: string;
  opening: string;
  opening_chars: number;
  persona_names: string[];
  prompt_chars: number;
}

export interface AgentStats {
  agent_id: string;
  cost_usd: number | null;
  calls: number;
  unknown_cost_calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  estimated_cost_calls: number;
  cached_tokens: number;
  reasoning_tokens: number;
}

export interface Approval {
  id: string;
  conversation_id: string;
  agent_id: string;
  kind: string;
  tool: string;
  tool_call_id: string;
  arguments: Json;
  reason: string;
  options: string[];
  answer: string | null;
  status: string;
  created_at: string;
  expires_at: string;
  decided_at: string | null;
  summary: string;
  preview: string;
  run_id: string;
  may_always: boolean;
  decided_by: string | null;
  always_allows: string;
  review: Review | null;
  delivery: string;
}

export interface ApprovalRequired {
  approval: Approval | null;
}

export interface AssistantMessage {
  message: Message | null;
}

export interface AuditEntry {
  id: string;
  at: string;
  agent_id: string;
  conversation_id: string;
  run_id: string;
  call_id: string;
  tool: string;
  effect: string | null;
  arguments_sha256: string;
  arguments_short: string;
  command: string | null;
  allowed_by: string;
  rule: string;
  decided_by: string | null;
  result: string;
  outcome: string | null;
  fault: string;
  exit_code: number | null;
  ms: number | null;
  bytes_in: number;
  bytes_out: number | null;
  trace_id: string;
  reviewed_by: string | null;
}

export interface Budget {
  scope: string;
  id: string;
  period: string;
  limit_usd: number;
  spent_usd: number;
  reserved_usd: number;
  unknown_cost_calls: number;
  state: string;
  go_on_today: boolean | null;
}

export interface BudgetsReply {
  budgets: Budget[];
  day: string;
  timezone: string;
}

export interface Compacted {
  turns: number;
  text: string;
}

export interface ConnectionsReply {
  providers: string[];
  routes: string[];
  routes_source: string;
  vision_routes: string[];
  audio_routes: string[];
  keys: KeyPresence[];
  route_states: RouteState[];
  hosts: HostState[];
  troubles: ToolTrouble[];
}

export interface Conversation {
  id: string;
  agent_id: string;
  channel: string;
  title: string;
  created_at: string;
  updated_at: string;
  autonomous: boolean;
  skills: string[];
  auto_approve: string[];
  approval_ttl_seconds: number | null;
  cost_cap_usd: number;
  spent_usd: number;
  unknown_cost_calls: number;
  over_budget: boolean;
  forked_from: string | null;
  running: boolean;
  queued: QueuedMessage[];
  pending_approval: Approval | null;
  messages: Message[];
  has_earlier: boolean;
  grants: Grant[];
}

export interface ConversationFrame {
  conversation_id: string;
  removed: boolean;
  title: string;
}

export interface Count {
  name: string;
  count: number;
}

export interface CreatedToken {
  id: string;
  name: string;
  scopes: string[];
  created_at: string;
  expires_at: string | null;
  token: string;
}

export interface DayStats {
  day: string;
  cost_usd: number | null;
  calls: number;
  unknown_cost_calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  estimated_cost_calls: number;
  cached_tokens: number;
  reasoning_tokens: number;
}

export interface DescriptionFaults {
  tool: string;
  total: number;
  parameters: Count[];
  unknown_names: Count[];
  absent: number;
  followed_by: Count[];
}

export interface Done {
  text: string;
  steps: number;
  spent_usd: number;
  unknown_cost_calls: number;
}

export interface Escalated {
  reason: string;
  route: string;
  error: string;
}

export interface Failed {
  message: string;
}

export interface ForkConversationReply {
  conversation: Conversation | null;
  text: string;
}

export interface Grant {
  allows: string;
  uses: number;
}

export interface Halted {
  reason: string;
  text: string;
  steps: number;
  spent_usd: number;
  unknown_cost_calls: number;
}

export interface HealthReply {
  status: string;
  version: string;
  services: ServiceHealth[];
}

export interface HostState {
  name: string;
  reachable: boolean;
  note: string;
  isolation: string;
  isolation_note: string;
  tools: string[];
}

export interface KeyPresence {
  name: string;
  present: boolean;
}

export interface ListNotificationsReply {
  notifications: Notification[];
  unread: number;
}

export interface MarkNotificationsReadReply {
  unread: number;
}

export interface Message {
  id: number;
  seq: number;
  role: string;
  content: string;
  tool_calls: MessageToolCall[];
  tool_call_id: string | null;
  name: string | null;
  provider: string | null;
  model: string | null;
  cost_usd: number | null;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  cached_tokens: number | null;
  reasoning_tokens: number | null;
  created_at: string;
  details: Json;
  is_error: boolean;
  context: Json;
  author: string;
  cost_estimated: boolean;
  calls: Json;
  received_chars: number | null;
  printed_chars: number | null;
}

export interface MessageHit {
  conversation_id: string;
  title: string;
  message_id: number;
  agent_id: string;
  role: string;
  snippet: string;
  created_at: string;
}

export interface MessageToolCall {
  id: string;
  name: string;
  arguments: Json;
  broken: string | null;
}

export interface ModelStats {
  provider: string;
  model: string;
  cost_usd: number | null;
  calls: number;
  unknown_cost_calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  estimated_cost_calls: number;
  cached_tokens: number;
  reasoning_tokens: number;
}

export interface NestedCall {
  tool_call_id: string;
  index: number;
  call: Json;
}

export interface Notification {
  id: string;
  kind: string;
  cause: string;
  subject: string;
  text: string;
  created_at: string;
  read_at: string | null;
  approval_id: string | null;
  conversation_id: string | null;
  agent_id: string | null;
  over_at: string | null;
  delivery: string;
  delivered_by: string | null;
}

export interface NotificationFrame {
  notification: Notification | null;
  unread: number;
}

export interface PurposeStats {
  purpose: string;
  cost_usd: number | null;
  calls: number;
  unknown_cost_calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  estimated_cost_calls: number;
  cached_tokens: number;
  reasoning_tokens: number;
}

export interface Queued {
  item_id: number;
  kind: string;
  position: number;
}

export interface QueuedMessage {
  item_id: number;
  kind: string;
  position: number;
  text: string;
}

export interface Review {
  verdict: string;
  reason: string;
  route: string;
}

export interface RouteFallback {
  route: string;
  error: string;
  next_route: string;
}

export interface RouteState {
  route: string;
  usable: boolean;
  note: string;
  passed_over_until: string | null;
}

export interface Run {
  id: string;
  agent_id: string;
  source: string;
  conversation_id: string;
  status: string;
  summary: string;
  after_seq: number | null;
  started_at: string;
  finished_at: string | null;
  cost_usd: number;
  unknown_cost_calls: number;
  steps: RunStep[];
}

export interface RunEventFrame {
  run_id: string;
  conversation_id: string;
  step: RunStep | null;
}

export interface RunFrame {
  run: Run | null;
}

export interface RunStep {
  kind: string;
  index: number;
  started_at: string;
  ms: number | null;
  cost_usd: number | null;
  cost_estimated: boolean | null;
  route: string | null;
  first_token_ms: number | null;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  cached_tokens: number | null;
  reasoning_tokens: number | null;
  error: string | null;
  next_route: string | null;
  moved: string[];
  name: string | null;
  arguments: Json;
  ok: boolean | null;
  output: string | null;
  tool_call_id: string | null;
  verdict: string | null;
  shortened: string | null;
  original_chars: number | null;
  text: string | null;
  calls?: Json;
  received_chars?: number;
  printed_chars?: number;
}

export interface ServiceHealth {
  name: string;
  reachable: boolean;
  note: string;
  since: string;
}

export interface Setting {
  key: string;
  value: Json;
  source: string;
}

export interface SettingsReply {
  version: string;
  home: string;
  language: string;
  timezone: string;
  settings: Setting[];
}

export interface StatsReply {
  days: DayStats[];
  models: ModelStats[];
  purposes: PurposeStats[];
  by_agent: AgentStats[];
  cache_by_agent: AgentCacheStats[];
  unknown_cache_calls: number;
  pending_proposals: number;
  timezone: string;
}

export interface Steer {
  text: string;
  count: number;
}

export interface StopReply {
  cleared: string[];
  cancelled: boolean;
}

export interface TextDelta {
  text: string;
}

export type Thinking = Record<never, never>;

export interface TokenInfo {
  id: string;
  name: string;
  scopes: string[];
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
}

export interface Tool {
  name: string;
  description: string;
  requires_approval: boolean;
  agents: string[];
  optional: boolean;
  label: string;
  kind: string;
  host: string;
  with_reads?: boolean;
}

export interface ToolCall {
  id: string;
  name: string;
  arguments: Json;
}

export interface ToolCallDelta {
  index: number;
  name: string;
  chunk: string;
  attempt: number;
}

export interface ToolProgress {
  id: string;
  text: string;
  details: Json;
}

export interface ToolResult {
  id: string;
  name: string;
  ok: boolean;
  output: string;
  ms: number;
  cost_usd: number | null;
  calls: Json;
  received_chars: number | null;
  printed_chars: number | null;
  shortened: string | null;
  original_chars: number | null;
}

export interface ToolStatsReply {
  days: number;
  uses: ToolUse[];
  descriptions: DescriptionFaults[];
}

export interface ToolTrouble {
  tool: string;
  cause: string;
  since: string;
  note: string;
}

export interface ToolUse {
  tool: string;
  agent_id: string;
  calls: number;
  failures: Count[];
  refusals: number;
  p50_ms: number | null;
  p95_ms: number | null;
  max_ms: number | null;
  bytes_in: number;
  bytes_out: number;
}

export interface UserContext {
  context: string;
}

export type TurnEvent =
  | ({ type: "text_delta" } & TextDelta)
  | ({ type: "thinking" } & Thinking)
  | ({ type: "assistant_message" } & AssistantMessage)
  | ({ type: "tool_call" } & ToolCall)
  | ({ type: "nested_call" } & NestedCall)
  | ({ type: "tool_result" } & ToolResult)
  | ({ type: "approval_required" } & ApprovalRequired)
  | ({ type: "route_fallback" } & RouteFallback)
  | ({ type: "escalated" } & Escalated)
  | ({ type: "steer" } & Steer)
  | ({ type: "queued" } & Queued)
  | ({ type: "tool_progress" } & ToolProgress)
  | ({ type: "compacted" } & Compacted)
  | ({ type: "done" } & Done)
  | ({ type: "halted" } & Halted)
  | ({ type: "error" } & Failed)
  | ({ type: "user_context" } & UserContext)
  | ({ type: "tool_call_delta" } & ToolCallDelta);

export type ActivityFrame =
  | ({ type: "snapshot" } & ActivitySnapshot)
  | ({ type: "run" } & RunFrame)
  | ({ type: "event" } & RunEventFrame)
  | ({ type: "conversation" } & ConversationFrame)
  | ({ type: "notification" } & NotificationFrame);

/** What one conversation shows, and how stored messages and live events change it. No effects here. */

import type {
  Approval,
  Conversation,
  Json,
  Message,
  QueuedMessage,
  ToolResult,
  TurnEvent,
} from "../api/contract";

/** One tool call as far as it is known. */
export interface Outcome {
  status: "proposed" | "running" | "ok" | "failed";
  output: string;
  /** When this page saw it begin, in milliseconds; null when it came from the log. */
  startedAt: number | null;
  ms: number | null;
  costUsd: number | null;
  progress: string;
  nested: Json[];
  shortened: string | null;
  originalChars: number | null;
  receivedChars: number | null;
  printedChars: number | null;
}

/** A message of this tab that the log does not show yet. */
export interface Sent {
  key: string;
  text: string;
  /** It stands after this stored message. */
  afterSeq: number;
  at: string;
}

/** Something the turn said of itself that is no message. */
export interface Note {
  key: string;
  afterSeq: number;
  kind: "fallback" | "compacted" | "halted" | "error";
  /** Route, reason, sentence, or a number of turns. */
  detail: string;
  next: string;
}

/** The turn was handed to another model. */
export interface Escalation {
  route: string;
  /** What went wrong; empty when the turn went in circles. */
  error: string;
}

export interface Live {
  text: string;
  thinking: boolean;
}

export interface ThreadState {
  /** The conversation's head; its `messages` are those of the last load and not to be drawn. */
  conversation: Conversation | null;
  messages: readonly Message[];
  hasEarlier: boolean;
  sent: readonly Sent[];
  notes: readonly Note[];
  outcomes: ReadonlyMap<string, Outcome>;
  /** Of the latest turn; null when it stayed with its model. */
  escalation: Escalation | null;
  /** The turn being streamed, or null. */
  live: Live | null;
  queued: readonly QueuedMessage[];
  approval: Approval | null;
  /** The server runs a turn here, as far as this page knows. */
  running: boolean;
}

export const EMPTY_THREAD: ThreadState = {
  conversation: null,
  messages: [],
  hasEarlier: false,
  sent: [],
  notes: [],
  outcomes: new Map(),
  escalation: null,
  live: null,
  queued: [],
  approval: null,
  running: false,
};

export const FRESH_OUTCOME: Outcome = {
  status: "proposed",
  output: "",
  startedAt: null,
  ms: null,
  costUsd: null,
  progress: "",
  nested: [],
  shortened: null,
  originalChars: null,
  receivedChars: null,
  printedChars: null,
};

/** The highest sequence number held, 0 when there is none. */
export function lastSeq(state: ThreadState): number {
  return state.messages.at(-1)?.seq ?? 0;
}

/** Take a fresh answer of GET /api/conversations/{id}: the stored truth wins over what was streamed. */
export function loaded(state: ThreadState, conversation: Conversation): ThreadState {
  const messages = merge(state.messages, conversation.messages);
  const oldest = conversation.messages[0]?.seq;
  const knewOlder = oldest !== undefined && (state.messages[0]?.seq ?? Infinity) < oldest;
  return {
    ...state,
    conversation,
    messages,
    hasEarlier: knewOlder ? state.hasEarlier : conversation.has_earlier,
    sent: conversation.running ? stillUnstored(state.sent, messages) : [],
    outcomes: withStoredOutcomes(state.outcomes, conversation.messages, conversation.running),
    live: conversation.running ? (state.live ?? { text: "", thinking: false }) : null,
    queued: conversation.queued,
    approval: conversation.pending_approval,
    running: conversation.running,
  };
}

/** Put a page of older messages before the ones held. */
export function earlierLoaded(state: ThreadState, page: Conversation): ThreadState {
  return {
    ...state,
    messages: merge(page.messages, state.messages),
    hasEarlier: page.has_earlier,
    outcomes: withStoredOutcomes(state.outcomes, page.messages, false),
  };
}

/** Show the person's own words at once. */
export function sending(state: ThreadState, key: string, text: string, at: string): ThreadState {
  const bubble: Sent = { key, text, afterSeq: lastSeq(state), at };
  const sent = [...state.sent, bubble];
  return state.running ? { ...state, sent } : { ...state, sent, notes: [], escalation: null };
}

/** Take back a bubble that the server refused. */
export function unsent(state: ThreadState, key: string): ThreadState {
  return { ...state, sent: state.sent.filter((bubble) => bubble.key !== key) };
}

/** A watched turn is told from its beginning: what was streamed of it before is put aside. */
export function replaying(state: ThreadState): ThreadState {
  return { ...resumed(state), escalation: null };
}

/** The turn goes on where it paused. */
export function resumed(state: ThreadState): ThreadState {
  return { ...state, approval: null, running: true, live: { text: "", thinking: false } };
}

/** Apply events in order. `now` is the page's clock, `key` names the send whose stream this is. */
export function happened(
  state: ThreadState,
  events: readonly TurnEvent[],
  now: number,
  key = "",
): ThreadState {
  return events.reduce((so_far, event) => apply(so_far, event, now, key), state);
}

function apply(state: ThreadState, event: TurnEvent, now: number, key: string): ThreadState {
  const live = state.live ?? { text: "", thinking: false };
  switch (event.type) {
    case "thinking":
      return { ...state, running: true, live: { ...live, thinking: true } };
    case "text_delta":
      return { ...state, running: true, live: { text: live.text + event.text, thinking: false } };
    case "assistant_message": {
      if (!event.message) return state;
      const outcomes = new Map(state.outcomes);
      for (const call of event.message.tool_calls) {
        if (!outcomes.has(call.id)) outcomes.set(call.id, FRESH_OUTCOME);
      }
      return {
        ...state,
        messages: merge(state.messages, [event.message]),
        outcomes,
        live: { text: "", thinking: false },
      };
    }
    case "tool_call":
      return outcome(state, event.id, (was) =>
        was.status === "proposed" ? { ...was, status: "running", startedAt: now } : was,
      );
    case "tool_progress":
      return outcome(state, event.id, (was) => ({ ...was, progress: event.text }));
    case "nested_call":
      return outcome(state, event.tool_call_id, (was) => {
        const nested = [...was.nested];
        nested[event.index] = event.call;
        return { ...was, nested };
      });
    case "tool_result":
      return outcome(state, event.id, (was) => finished(was, event));
    case "approval_required":
      return { ...state, approval: event.approval, running: false, live: null };
    case "route_fallback":
      return note(state, { kind: "fallback", detail: event.route, next: event.next_route });
    case "compacted":
      return note(state, { kind: "compacted", detail: String(event.turns), next: "" });
    case "escalated":
      return {
        ...state,
        escalation: { route: event.route, error: event.reason === "error" ? event.error : "" },
      };
    case "steer": {
      const bubble: Sent = {
        key: `steer-${now}-${state.sent.length}`,
        text: event.text,
        afterSeq: lastSeq(state),
        at: new Date(now).toISOString(),
      };
      return {
        ...state,
        queued: state.queued.filter((item) => item.kind !== "steer"),
        sent: [...state.sent, bubble],
      };
    }
    case "queued": {
      const text = state.sent.find((bubble) => bubble.key === key)?.text ?? "";
      const others = state.queued.filter((item) => item.item_id !== event.item_id);
      const chip = { item_id: event.item_id, kind: event.kind, position: event.position, text };
      return {
        ...unsent(state, key),
        queued: [...others, chip].sort((one, other) => one.position - other.position),
      };
    }
    case "done":
      return over(spent(state, event));
    case "halted":
      return over(note(spent(state, event), { kind: "halted", detail: event.reason, next: event.text }));
    case "error":
      return over(note(state, { kind: "error", detail: event.message, next: "" }));
    case "user_context":
    case "tool_call_delta":
      return state;
    default:
      return state;
  }
}

function outcome(state: ThreadState, id: string, change: (was: Outcome) => Outcome): ThreadState {
  const outcomes = new Map(state.outcomes);
  outcomes.set(id, change(outcomes.get(id) ?? FRESH_OUTCOME));
  return { ...state, outcomes };
}

function finished(was: Outcome, event: ToolResult): Outcome {
  return {
    ...was,
    status: event.ok ? "ok" : "failed",
    output: event.output,
    ms: event.ms,
    costUsd: event.cost_usd,
    progress: "",
    nested: Array.isArray(event.calls) && event.calls.length > 0 ? event.calls : was.nested,
    shortened: event.shortened,
    originalChars: event.original_chars,
    receivedChars: event.received_chars,
    printedChars: event.printed_chars,
  };
}

function spent(state: ThreadState, event: { spent_usd: number; unknown_cost_calls: number }): ThreadState {
  if (!state.conversation) return state;
  const cap = state.conversation.cost_cap_usd;
  const conversation = {
    ...state.conversation,
    spent_usd: event.spent_usd,
    unknown_cost_calls: event.unknown_cost_calls,
    over_budget: cap > 0 && event.spent_usd >= cap,
  };
  return { ...state, conversation };
}

function over(state: ThreadState): ThreadState {
  return { ...state, running: false, live: null };
}

function note(state: ThreadState, what: Omit<Note, "key" | "afterSeq">): ThreadState {
  const after = lastSeq(state);
  const entry: Note = { ...what, key: `${what.kind}-${after}-${what.detail}-${what.next}`, afterSeq: after };
  // A replay tells the same again.
  if (state.notes.some((known) => known.key === entry.key)) return state;
  return { ...state, notes: [...state.notes, entry] };
}

/** Both lists as one, by sequence number; a message of `newer` replaces the one with its id. */
function merge(older: readonly Message[], newer: readonly Message[]): readonly Message[] {
  if (newer.length === 0) return older;
  const byId = new Map(older.map((message) => [message.id, message]));
  for (const message of newer) byId.set(message.id, message);
  return [...byId.values()].sort((one, other) => one.seq - other.seq);
}

function stillUnstored(sent: readonly Sent[], messages: readonly Message[]): readonly Sent[] {
  const taken = new Set<number>();
  return sent.filter((bubble) => {
    const stored = messages.find(
      (message) =>
        message.role === "user" &&
        message.seq > bubble.afterSeq &&
        !taken.has(message.id) &&
        message.content.trim() === bubble.text.trim(),
    );
    if (stored) taken.add(stored.id);
    return !stored;
  });
}

function withStoredOutcomes(
  known: ReadonlyMap<string, Outcome>,
  messages: readonly Message[],
  running: boolean,
): ReadonlyMap<string, Outcome> {
  const outcomes = new Map(known);
  for (const message of messages) {
    for (const call of message.tool_calls) {
      const was = outcomes.get(call.id);
      // With no turn running nothing runs: a call without a result waits or was cut off.
      if (!was) outcomes.set(call.id, FRESH_OUTCOME);
      else if (!running && was.status === "running") outcomes.set(call.id, { ...was, status: "proposed" });
    }
    if (message.role === "tool" && message.tool_call_id) {
      const was = outcomes.get(message.tool_call_id) ?? FRESH_OUTCOME;
      outcomes.set(message.tool_call_id, {
        ...was,
        status: message.is_error ? "failed" : "ok",
        output: message.content,
        progress: "",
      });
    }
  }
  return outcomes;
}

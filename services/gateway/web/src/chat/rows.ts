/** The thread as a list of rows to draw, in the order they were said. */

import type { Message, MessageToolCall } from "../api/contract";
import { FRESH_OUTCOME, type Note, type Outcome, type Sent, type ThreadState } from "./thread-state";

/** The key of the row that shows a stored message. */
export const rowKey = (seq: number) => `m-${seq}`;

export interface Call {
  call: MessageToolCall;
  outcome: Outcome;
}

export type Row =
  | { kind: "day"; key: string; at: string }
  /** `messageId` is null until the server has stored it. */
  | { kind: "user"; key: string; text: string; at: string; messageId: number | null }
  | { kind: "system"; key: string; text: string; at: string }
  | { kind: "assistant"; key: string; text: string; message: Message }
  | { kind: "calls"; key: string; calls: Call[] }
  | { kind: "note"; key: string; note: Note }
  | { kind: "live"; key: string; text: string; thinking: boolean };

/** What the rows but the streamed one are built from. */
export type Said = Pick<ThreadState, "messages" | "sent" | "notes" | "outcomes">;

/** Every row, the one being streamed included. */
export function rowsOf(state: ThreadState): Row[] {
  const live = liveRow(state);
  return live ? [...saidRows(state), live] : saidRows(state);
}

/** The reply being written, or that work goes on where nothing else says so. */
export function liveRow({ live, outcomes }: Pick<ThreadState, "live" | "outcomes">): Row | null {
  if (!live || (!live.text && toolRuns(outcomes))) return null;
  return { kind: "live", key: "live", text: live.text, thinking: live.thinking };
}

/** Rows of what has been said. Calls that follow each other without words between them share one list. */
export function saidRows(state: Said): Row[] {
  const rows: Row[] = [];
  const sent = [...state.sent];
  const notes = [...state.notes];
  let day = "";

  const passed = (seq: number) => {
    while (sent[0] && sent[0].afterSeq < seq) rows.push(sentRow(sent.shift() as Sent));
    while (notes[0] && notes[0].afterSeq < seq) {
      const note = notes.shift() as Note;
      rows.push({ kind: "note", key: note.key, note });
    }
  };

  const known = new Set(state.messages.flatMap((message) => message.tool_calls.map((call) => call.id)));
  for (const message of state.messages) {
    passed(message.seq);
    const date = new Date(message.created_at).toDateString();
    if (date !== day && message.role !== "tool") {
      day = date;
      rows.push({ kind: "day", key: `day-${message.seq}`, at: message.created_at });
    }
    const key = rowKey(message.seq);
    if (message.role === "user") {
      const kind = message.author === "system" ? "system" : "user";
      if (kind === "system") rows.push({ kind, key, text: message.content, at: message.created_at });
      else rows.push({ kind, key, text: message.content, at: message.created_at, messageId: message.id });
    } else if (message.role === "assistant") {
      if (message.content.trim()) rows.push({ kind: "assistant", key, text: message.content, message });
      addCalls(rows, key, message.tool_calls, state.outcomes);
    } else if (message.tool_call_id && !known.has(message.tool_call_id)) {
      // Its call is on an older page: the result stands alone until that is loaded.
      const call = { id: message.tool_call_id, name: message.name ?? "", arguments: {}, broken: null };
      addCalls(rows, key, [call], state.outcomes);
    }
  }
  passed(Infinity);
  return rows;
}

/** A running call says itself that work goes on. */
function toolRuns(outcomes: ReadonlyMap<string, Outcome>): boolean {
  return [...outcomes.values()].some(({ status }) => status === "running");
}

function addCalls(
  rows: Row[],
  key: string,
  calls: readonly MessageToolCall[],
  outcomes: ReadonlyMap<string, Outcome>,
): void {
  if (calls.length === 0) return;
  const entries = calls.map((call) => ({ call, outcome: outcomes.get(call.id) ?? FRESH_OUTCOME }));
  const last = rows.at(-1);
  if (last?.kind === "calls") last.calls.push(...entries);
  else rows.push({ kind: "calls", key: `${key}-calls`, calls: entries });
}

function sentRow(bubble: Sent): Row {
  return { kind: "user", key: bubble.key, text: bubble.text, at: bubble.at, messageId: null };
}

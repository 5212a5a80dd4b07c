import { describe, expect, it } from "vitest";
import type { TurnEvent } from "../src/api/contract";
import { rowsOf } from "../src/chat/rows";
import {
  earlierLoaded,
  EMPTY_THREAD,
  happened,
  loaded,
  replaying,
  sending,
  unsent,
  type ThreadState,
} from "../src/chat/thread-state";
import { approval, conversation, message, result } from "./shapes";

const call = { id: "call-1", name: "shell_run", arguments: { command: "ls" }, broken: null };
const withCall = message(2, { role: "assistant", author: "agent", content: "I look.", tool_calls: [call] });
const answer = message(4, { role: "assistant", author: "agent", content: "All good." });

const TURN: TurnEvent[] = [
  { type: "thinking" },
  { type: "text_delta", text: "I " },
  { type: "text_delta", text: "look." },
  { type: "assistant_message", message: withCall },
  { type: "tool_call", id: "call-1", name: "shell_run", arguments: { command: "ls" } },
  { type: "tool_progress", id: "call-1", text: "halfway", details: {} },
  result({ output: "a\nb" }),
  { type: "text_delta", text: "All " },
  { type: "text_delta", text: "good." },
  { type: "assistant_message", message: answer },
  { type: "done", text: "All good.", steps: 2, spent_usd: 0.25, unknown_cost_calls: 0 },
];

const begun = sending(loaded(EMPTY_THREAD, conversation()), "k1", "Look around", "2026-03-01T10:00:00.000Z");
const kinds = (state: ThreadState) => rowsOf(state).map((row) => row.kind);

describe("a turn as it streams", () => {
  it("shows own words at once, then text, the call and its result", () => {
    expect(kinds(begun)).toEqual(["user"]);
    expect(kinds(happened(begun, TURN.slice(0, 3), 0))).toEqual(["user", "live"]);
    const running = happened(begun, TURN.slice(0, 6), 1000);
    expect(kinds(running)).toEqual(["user", "day", "assistant", "calls"]);
    expect(running.outcomes.get("call-1")).toMatchObject({ status: "running", progress: "halfway" });
    const done = happened(running, TURN.slice(6), 2000);
    expect(done.outcomes.get("call-1")).toMatchObject({ status: "ok", output: "a\nb", progress: "" });
    expect(done.running).toBe(false);
    expect(done.live).toBeNull();
  });

  it("[GTW-237] ends alike however often the turn is told again from its start", () => {
    const once = happened(begun, TURN, 0);
    for (let cut = 0; cut < TURN.length; cut++) {
      const again = happened(replaying(happened(begun, TURN.slice(0, cut), 0)), TURN, 0);
      expect(rowsOf(again)).toEqual(rowsOf(once));
    }
  });

  it("merged text of a watched turn reads as the pieces did", () => {
    const merged: TurnEvent[] = [{ type: "text_delta", text: "I look." }, ...TURN.slice(3)];
    expect(rowsOf(happened(replaying(begun), merged, 0))).toEqual(rowsOf(happened(begun, TURN, 0)));
  });

  it("[GTW-284] done and halted set the spend, and a spent budget locks", () => {
    const done = happened(begun, TURN, 0);
    expect(done.conversation?.spent_usd).toBe(0.25);
    expect(done.conversation?.over_budget).toBe(false);
    const halted = happened(
      begun,
      [{ type: "halted", reason: "budget", text: "", steps: 1, spent_usd: 0.5, unknown_cost_calls: 2 }],
      0,
    );
    expect(halted.conversation).toMatchObject({ spent_usd: 0.5, over_budget: true, unknown_cost_calls: 2 });
    expect(kinds(halted)).toEqual(["user", "note"]);
  });

  it("keeps the order of messages whatever order they come in", () => {
    const late = loaded(begun, conversation({ messages: [answer, message(1), withCall] }));
    expect(late.messages.map(({ seq }) => seq)).toEqual([1, 2, 4]);
  });

  it("an event of a kind it does not know changes nothing", () => {
    const odd = { type: "from_the_future" } as unknown as TurnEvent;
    expect(happened(begun, [odd], 0)).toBe(begun);
  });
});

describe("what waits", () => {
  it("[TRN-086] a message sent beside a turn becomes a chip and leaves the thread", () => {
    const state = happened(
      { ...begun, running: true },
      [{ type: "queued", item_id: 7, kind: "follow_up", position: 1 }],
      0,
      "k1",
    );
    expect(state.queued).toEqual([{ item_id: 7, kind: "follow_up", position: 1, text: "Look around" }]);
    expect(kinds(state)).toEqual([]);
  });

  it("a steer that was taken is no chip any more and stands in the thread", () => {
    const queued = [
      { item_id: 1, kind: "steer", position: 1, text: "/steer left" },
      { item_id: 2, kind: "follow_up", position: 2, text: "later" },
    ];
    const state = happened({ ...EMPTY_THREAD, queued }, [{ type: "steer", text: "left", count: 1 }], 0);
    expect(state.queued.map((item) => item.item_id)).toEqual([2]);
    expect(rowsOf(state)).toMatchObject([{ kind: "user", text: "left" }]);
  });

  it("a request stops the turn and stands until a load says that it is gone", () => {
    const waiting = happened(begun, [{ type: "approval_required", approval: approval() }], 0);
    expect(waiting.running).toBe(false);
    expect(waiting.approval?.id).toBe("a1");
    expect(loaded(waiting, conversation()).approval).toBeNull();
  });
});

describe("what the log says", () => {
  it("takes the place of own words when it has them, also of the same words said twice", () => {
    const twice = sending(begun, "k2", "Look around", "2026-03-01T10:00:01.000Z");
    const one = conversation({ running: true, messages: [message(1, { content: "Look around" })] });
    expect(loaded(twice, one).sent).toHaveLength(1);
    const both = conversation({
      running: true,
      messages: [message(1, { content: "Look around" }), message(2, { content: "Look around" })],
    });
    expect(loaded(twice, both).sent).toHaveLength(0);
  });

  it("[GTW-223] a refused send takes its bubble back", () => {
    expect(kinds(unsent(begun, "k1"))).toEqual([]);
  });

  it("older pages go in front and do not forget that there are still older ones", () => {
    const newest = loaded(EMPTY_THREAD, conversation({ messages: [message(51)], has_earlier: true }));
    const grown = earlierLoaded(newest, conversation({ messages: [message(50)], has_earlier: false }));
    expect(grown.messages.map(({ seq }) => seq)).toEqual([50, 51]);
    expect(grown.hasEarlier).toBe(false);
    const fresh = conversation({ messages: [message(51), message(52)], has_earlier: true });
    expect(loaded(grown, fresh)).toMatchObject({ hasEarlier: false });
  });

  it("[GTW-285] a stored failure is a failed call with its whole reason", () => {
    const reason = "x".repeat(900);
    const state = loaded(
      EMPTY_THREAD,
      conversation({
        messages: [
          withCall,
          message(3, {
            role: "tool",
            author: "tool",
            tool_call_id: "call-1",
            content: reason,
            is_error: true,
          }),
        ],
      }),
    );
    expect(state.outcomes.get("call-1")).toMatchObject({ status: "failed", output: reason });
    expect(kinds(state)).toEqual(["day", "assistant", "calls"]);
  });

  it("a call that was cut off does not run for ever", () => {
    const running = happened(begun, TURN.slice(0, 5), 0);
    expect(running.outcomes.get("call-1")?.status).toBe("running");
    const after = loaded(running, conversation({ messages: [withCall] }));
    expect(after.outcomes.get("call-1")?.status).toBe("proposed");
  });
});

import { describe, expect, it } from "vitest";
import { applyFetched, applyFrame, newestFirst, type Runs } from "../src/activity/hub";
import { needsYou } from "../src/manage/seen-failures";
import { run, step } from "./shapes";

const known = (...runs: ReturnType<typeof run>[]): Runs => new Map(runs.map((one) => [one.id, one]));

describe("runs as the stream tells them", () => {
  it("a snapshot drops what is no longer live and keeps what has ended", () => {
    const after = applyFrame(known(run("gone"), run("old", { status: "done" })), {
      type: "snapshot",
      runs: [run("new")],
    });
    expect([...after.keys()]).toEqual(["old", "new"]);
  });

  it("a step told again takes its own place, in the order of the run", () => {
    let runs = known(run("r"));
    const tell = (one: ReturnType<typeof step>) => {
      runs = applyFrame(runs, { type: "event", run_id: "r", conversation_id: "c1", step: one });
    };
    tell(step(2));
    tell(step(0));
    tell(step(2, { ms: 7, cost_usd: 0.5 }));
    expect(runs.get("r")?.steps.map(({ index, ms }) => [index, ms])).toEqual([
      [0, null],
      [2, 7],
    ]);
    expect(runs.get("r")?.cost_usd).toBe(0.5);
  });

  it("a frame without steps keeps the ones that were told", () => {
    const runs = applyFrame(known(run("r", { steps: [step(0)] })), {
      type: "run",
      run: run("r", { status: "done" }),
    });
    expect(runs.get("r")).toMatchObject({ status: "done", steps: [{ index: 0 }] });
  });

  it("an answer that is older than the stream changes nothing", () => {
    const told = run("r", {
      status: "done",
      finished_at: "2026-03-01T10:05:00.000Z",
      steps: [step(0), step(1)],
    });
    expect(applyFetched(known(told), [run("r", { steps: [step(0)] })]).get("r")).toBe(told);
  });

  it("[GTW-092] still running first, then the later end", () => {
    const ended = (id: string, minute: number) =>
      run(id, { status: "done", finished_at: `2026-03-01T10:0${minute}:00.000Z` });
    const sorted = [ended("a", 1), run("live"), ended("b", 3)].sort(newestFirst);
    expect(sorted.map(({ id }) => id)).toEqual(["live", "b", "a"]);
  });

  it("[GTW-240] failures need the person until seen, what the person stopped does not", () => {
    const runs = [
      run("e", { status: "error", summary: "boom" }),
      run("h", { status: "halted", summary: "budget" }),
      run("s", { status: "error", summary: "interrupted" }),
      run("d", { status: "done" }),
    ];
    expect(needsYou(runs, ["h"]).map(({ id }) => id)).toEqual(["e"]);
  });
});

/** Every run this page has heard of, kept true by the activity stream. */

import type { ActivityFrame, Run, RunStep } from "../api/contract";
import { Store } from "../state/store";
import { ActivityChannel, type ChannelState } from "./channel";

export type Runs = ReadonlyMap<string, Run>;

const KEPT_RUNS = 800;

export const isLive = (run: Run) => run.status === "running" || run.status === "awaiting_approval";

/** Apply one frame; a step that is told again replaces the one with its index. */
export function applyFrame(known: Runs, frame: ActivityFrame): Runs {
  switch (frame.type) {
    case "snapshot": {
      const live = new Set(frame.runs.map((run) => run.id));
      const kept = [...known].filter(([id, run]) => !isLive(run) || live.has(id));
      return new Map([...kept, ...frame.runs.map((run): [string, Run] => [run.id, run])]);
    }
    case "run": {
      if (!frame.run) return known;
      const was = known.get(frame.run.id);
      const steps = frame.run.steps.length > 0 || !was ? frame.run.steps : was.steps;
      return bounded(new Map(known).set(frame.run.id, { ...frame.run, steps }));
    }
    case "event": {
      const run = known.get(frame.run_id);
      if (!run || !frame.step) return known;
      const { step } = frame;
      const steps = run.steps.filter((other) => other.index !== step.index);
      const at = steps.findIndex((other) => other.index > step.index);
      steps.splice(at < 0 ? steps.length : at, 0, step);
      return new Map(known).set(run.id, { ...run, steps, cost_usd: Math.max(run.cost_usd, costOf(steps)) });
    }
    case "conversation":
      return known;
    default:
      return known;
  }
}

function costOf(steps: readonly RunStep[]): number {
  return steps.reduce((sum, step) => sum + (step.cost_usd ?? 0), 0);
}

/** Take fetched runs, unless the stream has told more of one already. */
export function applyFetched(known: Runs, fetched: readonly Run[]): Runs {
  const next = new Map(known);
  for (const run of fetched) {
    const was = next.get(run.id);
    const olderAnswer = was && ((was.finished_at && !run.finished_at) || was.steps.length > run.steps.length);
    if (!olderAnswer) next.set(run.id, run);
    else if (run.finished_at) next.set(run.id, { ...run, steps: was.steps });
  }
  return bounded(next);
}

function bounded(all: Map<string, Run>): Runs {
  if (all.size <= KEPT_RUNS) return all;
  const oldestFirst = [...all.values()]
    .filter((run) => !isLive(run))
    .sort((one, other) => one.started_at.localeCompare(other.started_at));
  for (const run of oldestFirst.slice(0, all.size - KEPT_RUNS)) all.delete(run.id);
  return all;
}

/** Still running first, then later end, newest first (GTW-092). */
export function newestFirst(one: Run, other: Run): number {
  if (isLive(one) !== isLive(other)) return isLive(one) ? -1 : 1;
  const end = (run: Run) => run.finished_at ?? run.started_at;
  return end(other).localeCompare(end(one)) || other.started_at.localeCompare(one.started_at);
}

class Hub {
  readonly runs = new Store<Runs>(new Map());
  readonly state = new Store<ChannelState>("connecting");
  /** When the stream was lost, in milliseconds. */
  readonly lostAt = new Store<number | null>(null);
  readonly #listeners = new Set<(frame: ActivityFrame) => void>();
  #channel: ActivityChannel | null = null;

  start(): () => void {
    const channel = new ActivityChannel({
      onFrames: (frames) => {
        this.runs.update((known) => frames.reduce(applyFrame, known));
        for (const frame of frames) this.#listeners.forEach((listener) => listener(frame));
      },
      onState: (state) => {
        if (state === "lost") this.lostAt.update((at) => at ?? Date.now());
        if (state === "live") this.lostAt.set(null);
        this.state.set(state);
      },
      snapshot: () => ({ type: "snapshot", runs: [...this.runs.get().values()].filter(isLive) }),
    });
    this.#channel = channel;
    channel.start();
    return () => {
      channel.stop();
      this.#channel = null;
    };
  }

  retry = (): void => this.#channel?.retry();

  take(fetched: readonly Run[]): void {
    this.runs.update((known) => applyFetched(known, fetched));
  }

  /** Hear each frame after it was applied. */
  onFrame(listener: (frame: ActivityFrame) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

export const hub = new Hub();

/** Runs that ended badly stay in front until the person said "seen" on this device (GTW-240). */

import type { Run } from "../api/contract";
import { recallJson, remember } from "../state/device";
import { Store, useStore } from "../state/store";

const KEPT = 300;
const seen = new Store<readonly string[]>(recallJson("seen-failures", []));

export function useSeenFailures(): readonly string[] {
  return useStore(seen);
}

export function markFailureSeen(id: string): void {
  const next = [...seen.get().filter((other) => other !== id), id].slice(-KEPT);
  seen.set(next);
  remember("seen-failures", JSON.stringify(next));
}

/** A turn stopped by the person needs nobody. */
export function needsYou(runs: readonly Run[], seenIds: readonly string[]): Run[] {
  return runs.filter(
    (run) =>
      (run.status === "error" || run.status === "halted") &&
      run.summary !== "interrupted" &&
      !seenIds.includes(run.id),
  );
}

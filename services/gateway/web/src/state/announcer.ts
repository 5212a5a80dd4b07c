/** What a screen reader is told: one polite region and one for what cannot wait (FLD-077). */

import { Store } from "./store";

export interface Announcement {
  text: string;
  /** Counts up, so that the same sentence twice is told twice. */
  turn: number;
}

export const polite = new Store<Announcement>({ text: "", turn: 0 });
export const urgent = new Store<Announcement>({ text: "", turn: 0 });

export function announce(text: string): void {
  polite.update(({ turn }) => ({ text, turn: turn + 1 }));
}

export function alertNow(text: string): void {
  urgent.update(({ turn }) => ({ text, turn: turn + 1 }));
}

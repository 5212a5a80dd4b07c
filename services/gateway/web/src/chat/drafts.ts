/** What was typed and not sent, for each conversation of this device. */

import { recall, remember } from "../state/device";

const keyOf = (id: string) => `draft.${id}`;

export function draftOf(id: string): string {
  return recall(keyOf(id)) ?? "";
}

export function keepDraft(id: string, text: string): void {
  remember(keyOf(id), text === "" ? null : text);
}

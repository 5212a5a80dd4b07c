/** What only this device remembers: drafts, seen marks, filters (GTW-266). */

const memory = new Map<string, string>();
const PREFIX = "crew.";

/** The stored text, or null. Works from memory when the browser refuses its store. */
export function recall(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key) ?? memory.get(key) ?? null;
  } catch {
    return memory.get(key) ?? null;
  }
}

/** Remember `value`, or forget the key when it is null. */
export function remember(key: string, value: string | null): void {
  if (value === null) memory.delete(key);
  else memory.set(key, value);
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
  } catch {
    // Refused or full: memory has it for as long as the page lives.
  }
}

/** A remembered JSON value, or `fallback` when there is none or it does not read. */
export function recallJson<T>(key: string, fallback: T): T {
  const text = recall(key);
  if (text === null) return fallback;
  try {
    return JSON.parse(text) as T;
  } catch {
    return fallback;
  }
}

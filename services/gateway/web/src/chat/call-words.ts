/** A tool call in a few words, and which parts of a command a rule pointed at. */

import type { Json } from "../api/contract";
import { revealText } from "../format/hidden";

const TELLING = ["command", "path", "pattern", "query", "url", "question", "text", "name"];

export function asRecord(value: Json): Record<string, Json> {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
}

/** The one argument that says most, on one line. */
export function shortArguments(value: Json): string {
  const record = asRecord(value);
  const key = TELLING.find((name) => typeof record[name] === "string") ?? Object.keys(record)[0];
  if (key === undefined) return "";
  return revealText(oneLine(record[key] as Json)).slice(0, 160);
}

function oneLine(value: Json): string {
  return (typeof value === "string" ? value : JSON.stringify(value)).replace(/\s+/g, " ").trim();
}

/** A value as a person reads it: strings as they are, the rest as indented JSON. */
export function readable(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** What a reason quotes (`rm`, “sudo”), to be marked in the command. */
export function quotedIn(reason: string): string[] {
  return [...reason.matchAll(/[`“"']([^`”"']{2,80})[`”"']/g)].map((match) => match[1] ?? "");
}

/** Whether a preview is a diff to be coloured by line. */
export function isDiff(text: string): boolean {
  return /^(@@|--- |\+\+\+ |diff )/m.test(text);
}

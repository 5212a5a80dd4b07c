/** Times as people read them. Everything the server sends is UTC; everything shown is local. */

export type Day = "today" | "yesterday" | "older";

/** Which heading of the conversation list an instant falls under, on the viewer's calendar (GTW-214). */
export function dayOf(iso: string, now: number): Day {
  const at = startOfDay(Date.parse(iso));
  if (at >= startOfDay(now)) return "today";
  // Noon less a day is always yesterday, a day of 23 or 25 hours included.
  return at >= startOfDay(startOfDay(now) - 12 * 3600_000) ? "yesterday" : "older";
}

function startOfDay(at: number): number {
  const date = new Date(at);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}

/** How long something took or has been going on: 4 ms, 1.9 s, 42 s, 3 min 07 s, 2 h 05 min. */
export function duration(ms: number): string {
  if (ms < 0) return "0 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}

/** Whole seconds running, for a figure that changes each second: 0:07, 3:42, 1:02:03. */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const rest = `${two(Math.floor((seconds % 3600) / 60))}:${two(seconds % 60)}`;
  return seconds < 3600 ? rest.replace(/^0/, "") : `${Math.floor(seconds / 3600)}:${rest}`;
}

/** What is left until an instant, in whole seconds. */
export function countdown(untilIso: string, now: number): string {
  return elapsed(Math.max(0, Date.parse(untilIso) - now));
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** "now", "5 min ago", "3 h ago", "yesterday", then the date. */
export function relative(iso: string, now: number, locale: string): string {
  const at = Date.parse(iso);
  const seconds = Math.round((now - at) / 1000);
  const format = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "narrow" });
  if (seconds < 45) return format.format(0, "second");
  if (seconds < 3600) return format.format(-Math.max(1, Math.round(seconds / 60)), "minute");
  if (dayOf(iso, now) === "today") return format.format(-Math.round(seconds / 3600), "hour");
  if (dayOf(iso, now) === "yesterday") return format.format(-1, "day");
  const sameYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return new Intl.DateTimeFormat(locale, {
    day: "numeric",
    month: "short",
    ...(sameYear ? {} : { year: "numeric" }),
  }).format(at);
}

/** The exact local time, for a title. */
export function exact(iso: string, locale: string): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" }).format(
    Date.parse(iso),
  );
}

/** Hours and minutes. */
export function clock(iso: string, locale: string): string {
  return new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" }).format(Date.parse(iso));
}

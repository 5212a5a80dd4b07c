/** Adding up what calls cost without ever taking an unknown price for nothing. */

/** What every row of the statistics carries. */
export interface Spent {
  /** USD of the calls whose price is known; null when no call's is. */
  cost_usd: number | null;
  calls: number;
  unknown_cost_calls: number;
  estimated_cost_calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
}

export const NOTHING_SPENT: Spent = {
  cost_usd: null,
  calls: 0,
  unknown_cost_calls: 0,
  estimated_cost_calls: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  cached_tokens: 0,
};

export function sum(rows: readonly Spent[]): Spent {
  return rows.reduce<Spent>(
    (so_far, row) => ({
      cost_usd: row.cost_usd === null ? so_far.cost_usd : (so_far.cost_usd ?? 0) + row.cost_usd,
      calls: so_far.calls + row.calls,
      unknown_cost_calls: so_far.unknown_cost_calls + row.unknown_cost_calls,
      estimated_cost_calls: so_far.estimated_cost_calls + row.estimated_cost_calls,
      prompt_tokens: so_far.prompt_tokens + row.prompt_tokens,
      completion_tokens: so_far.completion_tokens + row.completion_tokens,
      cached_tokens: so_far.cached_tokens + row.cached_tokens,
    }),
    NOTHING_SPENT,
  );
}

/** The last `count` calendar days in a zone as YYYY-MM-DD, today last. */
export function lastDays(count: number, now: number, timezone: string): string[] {
  // Swedish writes dates as ISO does.
  const today = new Intl.DateTimeFormat("sv-SE", timezone ? { timeZone: timezone } : {}).format(now);
  const noon = Date.parse(`${today}T12:00:00Z`);
  return Array.from({ length: count }, (_, back) =>
    new Date(noon - (count - 1 - back) * 86_400_000).toISOString().slice(0, 10),
  );
}

/** Each of `days` with its row; a day without a call has an empty one. */
export function byDay<Row extends Spent & { day: string }>(
  rows: readonly Row[],
  days: readonly string[],
): (Spent & { day: string })[] {
  return days.map((day) => rows.find((row) => row.day === day) ?? { ...NOTHING_SPENT, day });
}

/** Dearest first; where nothing is known, more calls first. */
export function dearestFirst(one: Spent, other: Spent): number {
  return (other.cost_usd ?? -1) - (one.cost_usd ?? -1) || other.calls - one.calls;
}

/** The part of the prompt tokens that came from the providers' caches, 0 to 1; null when none were told. */
export function cacheShare(row: { prompt_tokens: number; cached_tokens: number }): number | null {
  return row.prompt_tokens > 0 ? Math.min(1, row.cached_tokens / row.prompt_tokens) : null;
}

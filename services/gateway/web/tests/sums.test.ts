import { describe, expect, it } from "vitest";
import { byDay, cacheShare, dearestFirst, lastDays, NOTHING_SPENT, sum } from "../src/manage/costs/sums";

const spent = (cost_usd: number | null, unknown_cost_calls = 0) => ({
  ...NOTHING_SPENT,
  cost_usd,
  calls: 1 + unknown_cost_calls,
  unknown_cost_calls,
});

describe("sums of costs", () => {
  it("[GTW-243] never take an unknown price for nothing", () => {
    expect(sum([spent(null, 2), spent(null, 1)])).toMatchObject({ cost_usd: null, unknown_cost_calls: 3 });
    expect(sum([spent(null, 2), spent(0.5)])).toMatchObject({
      cost_usd: 0.5,
      unknown_cost_calls: 2,
      calls: 4,
    });
    expect(sum([spent(0)]).cost_usd).toBe(0);
    expect(sum([]).calls).toBe(0);
    expect([spent(null, 9), spent(0.1), spent(2)].sort(dearestFirst).map((row) => row.cost_usd)).toEqual([
      2,
      0.1,
      null,
    ]);
  });

  it("[GTW-243] run over seven calendar days of a zone, also across the change of clocks and years", () => {
    const at = Date.parse("2026-03-29T22:30:00Z");
    expect(lastDays(7, at, "Europe/Berlin").at(-1)).toBe("2026-03-30");
    expect(lastDays(2, at, "Asia/Ho_Chi_Minh")).toEqual(["2026-03-29", "2026-03-30"]);
    expect(lastDays(3, at, "UTC")).toEqual(["2026-03-27", "2026-03-28", "2026-03-29"]);
    expect(lastDays(2, Date.parse("2027-01-01T00:10:00Z"), "UTC")).toEqual(["2026-12-31", "2027-01-01"]);
  });

  it("[GTW-243] have a row for a day without a call", () => {
    const rows = [{ ...spent(1), day: "2026-03-27" }];
    expect(byDay(rows, ["2026-03-26", "2026-03-27"]).map(({ day, calls }) => [day, calls])).toEqual([
      ["2026-03-26", 0],
      ["2026-03-27", 1],
    ]);
  });

  it("say nothing of a cache where no prompt was counted", () => {
    expect(cacheShare({ prompt_tokens: 0, cached_tokens: 0 })).toBeNull();
    expect(cacheShare({ prompt_tokens: 200, cached_tokens: 50 })).toBe(0.25);
  });
});

import { describe, expect, it } from "vitest";
import { compact } from "../src/format/count";
import { limit, money } from "../src/format/money";
import { countdown, dayOf, duration, elapsed, relative } from "../src/format/time";

describe("money", () => {
  it("has four digits under one dollar and two from there", () => {
    expect([0, 0.00001, 0.0021, 0.5, 0.99994, 0.99996, 1, 1234.5].map(money)).toEqual([
      "$0",
      "<$0.0001",
      "$0.0021",
      "$0.5000",
      "$0.9999",
      "$1.00",
      "$1.00",
      "$1,234.50",
    ]);
    expect([0.5, 2, 0.1234].map(limit)).toEqual(["$0.50", "$2.00", "$0.1234"]);
  });
});

describe("time", () => {
  it("says how long in the unit that fits", () => {
    expect([-5, 4, 999, 1949, 42_400, 187_000, 7_500_000].map(duration)).toEqual([
      "0 ms",
      "4 ms",
      "999 ms",
      "1.9 s",
      "42 s",
      "3 min 07 s",
      "2 h 05 min",
    ]);
    expect([0, 7_000, 222_000, 3_723_000].map(elapsed)).toEqual(["0:00", "0:07", "3:42", "1:02:03"]);
  });

  it("[GTW-242] counts down as m:ss and stays at nothing when it is over", () => {
    const until = "2026-03-01T10:10:00.000Z";
    expect(countdown(until, Date.parse("2026-03-01T10:00:00.000Z"))).toBe("10:00");
    expect(countdown(until, Date.parse("2026-03-01T10:09:51.000Z"))).toBe("0:09");
    expect(countdown(until, Date.parse("2026-03-01T11:00:00.000Z"))).toBe("0:00");
  });

  it("[GTW-214] groups by the viewer's own midnight", () => {
    const now = new Date(2026, 2, 10, 0, 30).getTime();
    const at = (day: number, hour: number) => new Date(2026, 2, day, hour).toISOString();
    expect(dayOf(at(10, 0), now)).toBe("today");
    expect(dayOf(at(9, 23), now)).toBe("yesterday");
    expect(dayOf(at(9, 0), now)).toBe("yesterday");
    expect(dayOf(at(8, 23), now)).toBe("older");
  });

  it("is relative in both languages, and a clock that runs ahead says now", () => {
    const now = Date.parse("2026-03-01T12:00:00Z");
    expect(relative("2026-03-01T12:00:20Z", now, "en")).toBe("now");
    expect(relative("2026-03-01T11:55:00Z", now, "en")).toMatch(/5/);
    expect(relative("2026-03-01T11:55:00Z", now, "vi")).toMatch(/5 phút trước/);
  });
});

it("counts stay short", () => {
  expect([0, 950, 1234, 9949, 34_200, 1_100_000].map(compact)).toEqual([
    "0",
    "950",
    "1.2k",
    "9.9k",
    "34k",
    "1.1M",
  ]);
});

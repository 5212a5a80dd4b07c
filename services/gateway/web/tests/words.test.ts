import { describe, expect, it } from "vitest";
import { setupTokenOf } from "../src/access/SetUp";
import { isDiff, quotedIn, shortArguments } from "../src/chat/call-words";
import { asMarkdown } from "../src/chat/export";
import { entryOf } from "../src/shell/version";
import { hrefOf, parseRoute } from "../src/state/route";
import { message } from "./shapes";

describe("addresses", () => {
  it("lead back to where they came from", () => {
    for (const route of [
      { page: "start" },
      { page: "conversation", id: "a/b c%" },
      { page: "manage", section: "activity", item: "r 1" },
      { page: "manage", section: "settings", item: null },
    ] as const) {
      expect(parseRoute(hrefOf(route))).toEqual(route);
    }
  });

  it("that cannot be decoded count as absent", () => {
    expect(parseRoute("#/c/%E0%A4%A")).toEqual({ page: "start" });
    expect(parseRoute("#/manage/nowhere")).toEqual({ page: "manage", section: "activity", item: null });
    expect(parseRoute("")).toEqual({ page: "start" });
  });

  it("a one-time link gives its token", () => {
    expect(setupTokenOf("#/setup/abc-123")).toBe("abc-123");
    expect(setupTokenOf("#/c/setup")).toBe("");
  });
});

describe("calls in words", () => {
  it("pick the argument that tells most", () => {
    expect(shortArguments({ limit: 3, path: "a\n b" })).toBe("a b");
    expect(shortArguments({ n: [1, 2] })).toBe("[1,2]");
    expect(shortArguments(null)).toBe("");
    expect(shortArguments({ command: "x".repeat(500) })).toHaveLength(160);
  });

  it("find what a reason quotes", () => {
    expect(quotedIn("The ask list has `rm -rf` and “sudo”.")).toEqual(["rm -rf", "sudo"]);
  });

  it("tell a diff from a list", () => {
    expect(isDiff("--- a/x\n+++ b/x\n@@ -1 +1 @@")).toBe(true);
    expect(isDiff("- one\n- two")).toBe(false);
  });
});

it("[GTW-265] the entry script of a page is found", () => {
  expect(entryOf('<script type="module" crossorigin src="/assets/index-Ab_1-2.js"></script>')).toBe(
    "/assets/index-Ab_1-2.js",
  );
  expect(entryOf("<html></html>")).toBeNull();
});

it("an export keeps fences of any length whole", () => {
  const call = { id: "c", name: "shell_run", arguments: { command: "echo ```" }, broken: null };
  const text = asMarkdown(
    "Title\nof two lines",
    [
      message(1, { content: "hi" }),
      message(2, { role: "assistant", content: "", tool_calls: [call] }),
      message(3, { role: "tool", content: "````" }),
    ],
    { you: "You", agent: "Pong" },
  );
  expect(text).toContain("# Title of two lines");
  expect(text).toContain("`````\n````\n`````");
  expect(text).toContain("````json");
});

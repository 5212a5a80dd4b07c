import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fill } from "../src/i18n";
import en from "../src/locales/en";
import vi from "../src/locales/vi";

const placeholders = (sentence: string) =>
  [...sentence.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort();

function sources(folder: string): string {
  return readdirSync(folder, { withFileTypes: true })
    .map((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return sources(path);
      return /\.tsx?$/.test(entry.name) ? readFileSync(path, "utf8") : "";
    })
    .join("\n");
}

describe("catalogues", () => {
  it("[GTW-262] have the same keys, no empty sentence and the same placeholders", () => {
    expect(Object.keys(vi)).toEqual(Object.keys(en));
    for (const [key, sentence] of Object.entries(en)) {
      const other = vi[key as keyof typeof vi];
      expect(sentence.trim(), key).not.toBe("");
      expect(other.trim(), key).not.toBe("");
      expect(placeholders(other), key).toEqual(placeholders(sentence));
    }
  });

  it("hold nothing that the page does not say", () => {
    const code = sources(new URL("../src", import.meta.url).pathname);
    expect(Object.keys(en).filter((key) => !code.includes(`"${key}"`))).toEqual([]);
  });

  it("[TRN-086] name waiting messages as agreed", () => {
    expect([en["queue.follow_up"], vi["queue.follow_up"]]).toEqual([
      "Queued, runs after this turn",
      "Đã xếp hàng, chạy sau lượt này",
    ]);
    expect([en["queue.steer"], vi["queue.steer"]]).toEqual([
      "Will join the running turn",
      "Sẽ chèn vào lượt đang chạy",
    ]);
  });

  it("leaves a placeholder without a value readable", () => {
    expect(fill("{a} of {b}", { a: 1 })).toBe("1 of {b}");
  });
});

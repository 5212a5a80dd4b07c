import { describe, expect, it } from "vitest";
import { reveal, revealText } from "../src/format/hidden";

/** One of every kind that hides: controls, bidi, joiners, fillers, selectors, tags, private use, odd blanks. */
const HIDDEN = [
  0x00, 0x07, 0x08, 0x0b, 0x0d, 0x1b, 0x7f, 0x85, 0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x180b, 0x180e,
  0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2060, 0x2061, 0x2064, 0x2066,
  0x2069, 0x206f, 0x2800, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0x1bca0, 0x1d173, 0xe0001, 0xe0041,
  0xe0100, 0xe0fff, 0xf0000,
];

describe("text before a yes", () => {
  it.each(HIDDEN.map((code) => [code.toString(16).toUpperCase().padStart(4, "0"), code] as const))(
    "[FLD-025] writes U+%s out",
    (name, code) => {
      expect(revealText(`rm${String.fromCodePoint(code)} x`)).toBe(`rm[U+${name}] x`);
    },
  );

  it("[FLD-025] counts long runs of blanks, odd ones included", () => {
    expect(revealText("a    b")).toBe("a    b");
    expect(revealText("a     b")).toBe("a[5 blanks]b");
    expect(revealText(`a${"\u2003\u00a0".repeat(3)}b`)).toBe("a[6 blanks]b");
  });

  it("[FLD-025] writes hosts in ASCII and marks mixed letters", () => {
    expect(revealText("curl https://\u0430pple.com/x")).toBe(
      "curl https://xn--pple-43d.com [mixed letters]/x",
    );
    expect(revealText("https://u:p@b\u00fccher.de:81/")).toBe("https://u:p@xn--bcher-kva.de:81/");
    expect(reveal("https://\u0430\u0440\u0440\u04cf\u0435.com")).toContainEqual(
      expect.objectContaining({ kind: "host", mixed: false }),
    );
    expect(revealText("https://example.org/đường")).toBe("https://example.org/đường");
  });

  it("leaves ordinary writing alone, in any script", () => {
    for (const text of ["Viết tệp ghi chú", "日本語\tמה\nстрока", "a\n\n\n\n\n\nb", "😀 é"]) {
      expect(revealText(text)).toBe(text);
    }
  });
});

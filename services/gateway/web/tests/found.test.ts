import { describe, expect, it } from "vitest";
import { bytes } from "../src/format/bytes";
import { foldedIncludes, foundParts } from "../src/format/folded";
import { plainLine } from "../src/format/plain";

const marked = (text: string, query: string) =>
  foundParts(text, query)
    .map((part) => (part.found ? `[${part.text}]` : part.text))
    .join("");

describe("finding words", () => {
  it("[GTW-215] takes no notice of case, accents and the stroke of đ", () => {
    expect(foldedIncludes("Đi Huế bằng tàu", "di hue")).toBe(true);
    expect(foldedIncludes("Đi Huế bằng tàu", "huế")).toBe(true);
    expect(foldedIncludes("Đi Huế", "hanoi")).toBe(false);
  });

  it("[GTW-215] marks each word in its own characters, composed or not", () => {
    expect(marked("Đi Huế bằng tàu", "hue tau")).toBe("Đi [Huế] bằng [tàu]");
    const decomposed = "Hue\u0302\u0301 xa";
    expect(marked(decomposed, "hue")).toBe("[Hue\u0302\u0301] xa");
    expect(marked("aaa", "a")).toBe("[aaa]");
    expect(marked("😀 nine", "nine")).toBe("😀 [nine]");
    expect(marked("plain", "(.*)")).toBe("plain");
    expect(marked("", "x")).toBe("");
  });
});

it("one line of a reply has no signs of Markdown, and keeps what only looks like them", () => {
  expect(plainLine("## Plan\n\n1. **one** [two](https://e.org)\n- `x_y`\n```py\n2 * 3\n```")).toBe(
    "Plan 1. one two x_y 2 * 3",
  );
  expect(plainLine("a_b_c and 2 ** 3 ** 4 and **/*.py")).toBe("a_b_c and 2 ** 3 ** 4 and **/*.py");
});

it("sizes have three digits at most", () => {
  expect([0, 812, 999, 1000, 4100, 36_400, 999_499, 999_600, 4_200_000, 3e12].map(bytes)).toEqual([
    "0 B",
    "812 B",
    "999 B",
    "1.0 kB",
    "4.1 kB",
    "36 kB",
    "999 kB",
    "1.0 MB",
    "4.2 MB",
    "3.0 TB",
  ]);
});

import { describe, expect, it } from "vitest";
import { enterMeans, type Keystroke } from "../src/chat/enter-key";

const enter: Keystroke = {
  key: "Enter",
  keyCode: 13,
  isComposing: false,
  shiftKey: false,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
};
const calm = { justComposed: false, touch: false };

describe("Enter", () => {
  it("[GTW-219] sends, and with Shift breaks a line", () => {
    expect(enterMeans(enter, calm)).toBe("send");
    expect(enterMeans({ ...enter, shiftKey: true }, calm)).toBe("line");
    expect(enterMeans({ ...enter, key: "a" }, calm)).toBe("leave");
  });

  it("[FLD-079] belongs to the input method while it composes, by any of the three signs", () => {
    expect(enterMeans({ ...enter, isComposing: true }, calm)).toBe("leave");
    expect(enterMeans({ ...enter, keyCode: 229 }, calm)).toBe("leave");
    expect(enterMeans(enter, { ...calm, justComposed: true })).toBe("leave");
    expect(enterMeans({ ...enter, ctrlKey: true, isComposing: true }, calm)).toBe("leave");
  });

  it("on a touch keyboard adds a line, and Ctrl+Enter sends", () => {
    const touch = { ...calm, touch: true };
    expect(enterMeans(enter, touch)).toBe("line");
    expect(enterMeans({ ...enter, ctrlKey: true }, touch)).toBe("send");
    expect(enterMeans({ ...enter, metaKey: true }, touch)).toBe("send");
  });
});

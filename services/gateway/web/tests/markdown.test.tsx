import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { decodeEntities } from "../src/markdown/entities";
import { safeLink } from "../src/markdown/links";
import { Markdown } from "../src/markdown/Markdown";

const html = (text: string) => renderToStaticMarkup(<Markdown text={text} />);

describe("markdown", () => {
  it("[GTW-234] leaves raw HTML the text it is", () => {
    const hostile = [
      "<script>alert(1)</script>",
      "<img src=x onerror=alert(1)>",
      "a <b onclick=x>b</b> c",
      "<iframe srcdoc='<script>1</script>'></iframe>",
      "<svg><a xlink:href='javascript:1'>x</a></svg>",
      "| a |\n| - |\n| <img src=x onerror=1> |",
      "# <u>x</u>",
      "- <style>*{display:none}</style>",
    ];
    for (const text of hostile) {
      const drawn = html(text);
      expect(drawn).not.toMatch(/<(script|img|iframe|svg|style|u|b)[ >]/);
      expect(drawn).toContain("&lt;");
    }
  });

  it("[GTW-234] follows no address but web and mail ones, however it is spelled", () => {
    const hostile = [
      "javascript:alert(1)",
      "JaVaScRiPt:alert(1)",
      "java\tscript:alert(1)",
      "&#106;avascript:alert(1)",
      "&#x6A;avascript&colon;alert(1)",
      "data:text/html,<script>1</script>",
      "vbscript:x",
      "file:///etc/passwd",
      "//evil.example/x",
      "/api/auth/logout",
      "#/manage",
    ];
    for (const href of hostile) {
      expect(safeLink(decodeEntities(href)), href).toBeNull();
      expect(html(`[click](<${href}>)`), href).not.toContain("<a ");
    }
    expect(safeLink("https://example.org/a")?.host).toBe("example.org");
  });

  it("[GTW-234] opens links in a new tab without a referrer", () => {
    expect(html("[x](https://example.org/a?b=1&c=2)")).toContain(
      '<a href="https://example.org/a?b=1&amp;c=2" target="_blank" rel="noopener noreferrer" title="example.org">',
    );
  });

  it("[GTW-234] loads no picture before it was asked for, and names its host", () => {
    const drawn = html("![a chart](https://charts.example.org/x.png)");
    expect(drawn).not.toContain("<img");
    expect(drawn).toContain("charts.example.org");
    expect(html("![x](data:image/svg+xml,<svg/>)")).not.toContain("<img");
  });

  it("writes entities and code as they were meant", () => {
    expect(html("a &amp; b &lt;i&gt; &#8364;")).toContain("a &amp; b &lt;i&gt; €");
    expect(html("`&amp;`")).toContain("<code>&amp;amp;</code>");
    expect(html("```js\nif (a < b) {}\n```")).toContain("if (a &lt; b) {}");
  });

  it("draws every half of a reply while it streams", () => {
    const reply =
      "# T\n\n1. **a** [l](https://e.org)\n\n| x | y |\n|---|--:|\n| 1 | `2` |\n\n```sh\nls\n```\n> q";
    for (let end = 0; end <= reply.length; end++) expect(() => html(reply.slice(0, end))).not.toThrow();
  });

  it("is not brought down by absurd nesting", () => {
    expect(() => html(`${"> ".repeat(400)}x`)).not.toThrow();
    expect(() => html("[".repeat(3000))).not.toThrow();
  });
});

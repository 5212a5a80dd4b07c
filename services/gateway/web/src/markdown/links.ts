const SAFE = new Set(["http:", "https:", "mailto:"]);

/** The address of a link that may be followed, or null: script, data and file addresses stay text. */
export function safeLink(href: string): URL | null {
  try {
    const url = new URL(href);
    return SAFE.has(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

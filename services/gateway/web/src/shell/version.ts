/** Whether the server has a newer page than this one (GTW-265). */

import { useEffect, useState } from "react";
import { hub } from "../activity/hub";

const LOOK_AT_MOST_EVERY_MS = 30_000;
const ENTRY = /src="(\/assets\/[^"]+\.js)"/;

/** The hashed entry script a page names, or null. */
export function entryOf(html: string): string | null {
  return ENTRY.exec(html)?.[1] ?? null;
}

export function useNewVersion(): boolean {
  const [newer, setNewer] = useState(false);
  useEffect(() => {
    const own = document.querySelector<HTMLScriptElement>('script[type="module"][src^="/assets/"]');
    const mine = own ? new URL(own.src).pathname : null;
    if (!mine) return;
    let last = Date.now();
    const look = async () => {
      if (document.visibilityState !== "visible" || Date.now() - last < LOOK_AT_MOST_EVERY_MS) return;
      last = Date.now();
      try {
        const response = await fetch("/", { cache: "no-cache", credentials: "same-origin" });
        const theirs = response.ok ? entryOf(await response.text()) : null;
        setNewer(theirs !== null && theirs !== mine);
      } catch {
        // A failed look shows nothing: the bar above tells that the crew does not answer.
      }
    };
    const focused = () => void look();
    addEventListener("focus", focused);
    const leave = hub.state.subscribe(() => {
      if (hub.state.get() === "live") void look();
    });
    return () => {
      removeEventListener("focus", focused);
      leave();
    };
  }, []);
  return newer;
}

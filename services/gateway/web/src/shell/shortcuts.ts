/** Keys for those who want them; none works while something is being typed. */

import { useEffect } from "react";
import { go } from "../state/route";
import { SEARCH_FIELD_ID, searchAsked } from "./search";

const SECOND_KEY_WITHIN_MS = 1200;

function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName))
  );
}

function focusSearch(): void {
  document.getElementById(SEARCH_FIELD_ID)?.focus();
}

interface Actions {
  openSheet: () => void;
  openSearch: () => void;
}

export function useShortcuts({ openSheet, openSearch }: Actions): void {
  useEffect(() => {
    let went = 0;
    const search = () => {
      searchAsked.set(true);
      openSearch();
      // The box, and where there is no room for it its drawer, are drawn first.
      requestAnimationFrame(focusSearch);
    };
    const pressed = (event: KeyboardEvent) => {
      if (event.isComposing || event.defaultPrevented) return;
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        search();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      if (went > 0 && performance.now() - went < SECOND_KEY_WITHIN_MS) {
        went = 0;
        const section = ({ a: "activity", p: "approvals", c: "connections", s: "settings" } as const)[
          event.key
        ];
        if (section) {
          event.preventDefault();
          go({ page: "manage", section, item: null });
          return;
        }
        if (event.key === "h") {
          event.preventDefault();
          go({ page: "start" });
          return;
        }
      }
      switch (event.key) {
        case "/":
          event.preventDefault();
          search();
          break;
        case "n":
          event.preventDefault();
          go({ page: "start" });
          break;
        case "g":
          went = performance.now();
          break;
        case "i":
          event.preventDefault();
          document.querySelector<HTMLElement>(".composer-text")?.focus();
          break;
        case "?":
          event.preventDefault();
          openSheet();
          break;
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, [openSheet, openSearch]);
}

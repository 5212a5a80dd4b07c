import { useSyncExternalStore } from "react";

/** Whether a media query holds, followed as the window changes. */
export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (changed) => {
      const list = matchMedia(query);
      list.addEventListener("change", changed);
      return () => list.removeEventListener("change", changed);
    },
    () => matchMedia(query).matches,
  );
}

/** The run column has room beside the thread. */
export const useWide = () => useMedia("(min-width: 1100px)");
/** One column; the conversation list is a drawer. */
export const usePhone = () => useMedia("(max-width: 719.98px)");
/** The rail has no room for titles: the list of conversations is a drawer. */
export const useNarrowRail = () => useMedia("(max-width: 1099.98px)");
/** Fingers: Enter breaks a line there, the button sends. */
export const useTouch = () => useMedia("(hover: none) and (pointer: coarse)");

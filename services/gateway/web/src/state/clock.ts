import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let now = Date.now();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    listeners.forEach((tell) => tell());
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The time in milliseconds, in steps of `step` seconds so that slow texts do not draw each second. */
export function useNow(step = 1): number {
  return useSyncExternalStore(subscribe, () => {
    if (listeners.size === 0) now = Date.now();
    return Math.floor(now / (step * 1000)) * step * 1000;
  });
}

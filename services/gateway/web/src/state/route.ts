/** Addresses after the hash: they survive a reload and can be shared. */

import { Store } from "./store";

export const SECTIONS = [
  "activity",
  "approvals",
  "costs",
  "audit",
  "crew",
  "tools",
  "connections",
  "settings",
] as const;
export type Section = (typeof SECTIONS)[number];

export type Route =
  | { page: "start" }
  /** `message` is the id of one of its messages, to be brought into view. */
  | { page: "conversation"; id: string; message?: number }
  | { page: "manage"; section: Section; item: string | null };

/** Read an address; what cannot be decoded counts as absent. */
export function parseRoute(hash: string): Route {
  const [first, second, third] = hash
    .replace(/^#?\/?/, "")
    .split("/")
    .map(decode);
  if (first === "c" && second) {
    const message = Number(third);
    return message > 0 && Number.isSafeInteger(message)
      ? { page: "conversation", id: second, message }
      : { page: "conversation", id: second };
  }
  if (first === "manage") {
    const section = SECTIONS.find((name) => name === second) ?? "activity";
    return { page: "manage", section, item: third || null };
  }
  return { page: "start" };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

export function hrefOf(route: Route): string {
  switch (route.page) {
    case "start":
      return "#/";
    case "conversation":
      return `#/c/${encodeURIComponent(route.id)}${route.message ? `/${route.message}` : ""}`;
    case "manage":
      return `#/manage/${route.section}${route.item ? `/${encodeURIComponent(route.item)}` : ""}`;
  }
}

export const route = new Store<Route>(parseRoute(typeof location === "undefined" ? "" : location.hash));

export function followHash(): () => void {
  const follow = () => route.set(parseRoute(location.hash));
  addEventListener("hashchange", follow);
  return () => removeEventListener("hashchange", follow);
}

export function go(to: Route): void {
  location.hash = hrefOf(to);
}

/** What the owner is told without having asked, and that this page showed it. */

import type { Notification } from "../api/contract";
import { hub } from "../activity/hub";
import { notifications as api } from "../api/crew";
import { ApiError } from "../api/http";
import { announce } from "./announcer";
import { waitingApprovals } from "./crew";
import { Store } from "./store";

const KEPT = 100;

/** Newest first; null before the first answer. */
export const notifications = new Store<readonly Notification[] | null>(null);
/** Of all there are, not of the loaded ones alone. */
export const unread = new Store(0);

async function quietly(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    // The bars tell that the crew does not answer; what is not confirmed is asked again.
    if (!(cause instanceof ApiError)) throw cause;
  }
}

// Counts frames, so that an answer that was under way when one came is asked for again.
let told = 0;

const refresh = () =>
  quietly(async () => {
    for (;;) {
      const before = told;
      const answer = await api.list(KEPT);
      if (told !== before) continue;
      notifications.set(answer.notifications);
      unread.set(answer.unread);
      return;
    }
  });

/** Mark these as read; without any, all there are. */
export const markRead = (ids: readonly string[]) =>
  quietly(async () => {
    unread.set((await api.markRead(ids)).unread);
    const now = new Date().toISOString();
    notifications.update((known) =>
      (known ?? []).map((one) =>
        one.read_at === null && (ids.length === 0 || ids.includes(one.id)) ? { ...one, read_at: now } : one,
      ),
    );
  });

const confirmed = new Set<string>();

/** A person can see what waits: say so, or it goes to the next channel after a minute. */
async function confirmShown(): Promise<void> {
  if (document.visibilityState !== "visible") return;
  const ids = [...(notifications.get() ?? []), ...waitingApprovals.get()]
    .filter(({ id, delivery }) => delivery === "waiting" && !confirmed.has(id))
    .map(({ id }) => id);
  if (ids.length === 0) return;
  ids.forEach((id) => confirmed.add(id));
  try {
    await api.confirm(ids);
  } catch (cause) {
    ids.forEach((id) => confirmed.delete(id));
    if (!(cause instanceof ApiError)) throw cause;
  }
}

function take(told: Notification): void {
  notifications.update((known) =>
    [told, ...(known ?? []).filter(({ id }) => id !== told.id)]
      .sort((one, other) => other.created_at.localeCompare(one.created_at))
      .slice(0, KEPT),
  );
}

/** Keep the list true until the returned function is called. */
export function followNotifications(): () => void {
  const known = (id: string) => (notifications.get() ?? []).some((one) => one.id === id);
  const leaveFrames = hub.onFrame((frame) => {
    if (frame.type !== "notification" || !frame.notification) return;
    told += 1;
    // A request is announced by its conversation.
    if (!known(frame.notification.id) && frame.notification.kind !== "approval") {
      announce(frame.notification.text);
    }
    take(frame.notification);
    unread.set(frame.unread);
  });
  const shown = () => void confirmShown();
  const leave = [
    leaveFrames,
    notifications.subscribe(shown),
    waitingApprovals.subscribe(shown),
    hub.state.subscribe(() => {
      if (hub.state.get() === "live") void refresh();
    }),
  ];
  document.addEventListener("visibilitychange", shown);
  void refresh();
  return () => {
    leave.forEach((stop) => stop());
    document.removeEventListener("visibilitychange", shown);
  };
}

/** What several screens share: the conversations, waiting requests, agents, and how the crew is. */

import type { Agent, Approval, Conversation, HealthReply } from "../api/contract";
import { hub } from "../activity/hub";
import { approvals, conversations, crew, system } from "../api/crew";
import { ApiError } from "../api/http";
import { setServerLanguage } from "../i18n";
import { recallJson, remember } from "./device";
import { Store } from "./store";

export const conversationList = new Store<readonly Conversation[] | null>(null);
export const waitingApprovals = new Store<readonly Approval[]>([]);
export const agents = new Store<readonly Agent[]>([]);
/** The last answer of the health route, or null before the first. */
export const health = new Store<HealthReply | null>(null);
export interface Outage {
  /** Milliseconds. */
  since: number;
  /** The gateway's own sentence when it still answers, else empty. */
  detail: string;
}
/** Nothing can be done now, and since when; null while the crew answers. */
export const outage = new Store<Outage | null>(null);
export const serverTimezone = new Store<string>("");

/** When each conversation was last looked at on this device. */
export const seenMarks = new Store<Readonly<Record<string, string>>>(recallJson("seen", {}));

export function markSeen(id: string, at: string): void {
  const marks = seenMarks.get();
  if ((marks[id] ?? "") >= at) return;
  const next = { ...marks, [id]: at };
  seenMarks.set(next);
  remember("seen", JSON.stringify(next));
}

export function masterFirst(all: readonly Agent[]): Agent[] {
  return [...all].sort(
    (one, other) => Number(other.master) - Number(one.master) || one.id.localeCompare(other.id),
  );
}

export function agentName(id: string): string {
  return agents.get().find((agent) => agent.id === id)?.name || id;
}

async function quietly(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    // The health bar tells that the crew does not answer; the last known state stays on the page.
    if (!(cause instanceof ApiError)) throw cause;
  }
}

export const refreshConversations = () =>
  quietly(async () => conversationList.set(await conversations.list()));

export const refreshApprovals = () => quietly(async () => waitingApprovals.set(await approvals.waiting()));

export const refreshAgents = () => quietly(async () => agents.set(await crew.agents()));

async function refreshSettings(): Promise<void> {
  await quietly(async () => {
    const settings = await system.settings();
    setServerLanguage(settings.language);
    serverTimezone.set(settings.timezone);
  });
}

export async function refreshHealth(): Promise<void> {
  try {
    health.set(await system.health(AbortSignal.timeout(8000)));
    if (outage.get() !== null) {
      outage.set(null);
      hub.retry();
    }
  } catch (cause) {
    const answered = cause instanceof ApiError && cause.status !== 0 && cause.status < 500;
    const detail = cause instanceof ApiError ? cause.detail : "";
    if (!answered) outage.update((known) => ({ since: known?.since ?? Date.now(), detail }));
  }
}

const HEALTH_EVERY_MS = 15_000;
const HEALTH_WHEN_DOWN_MS = 3_000;

/** Keep all of the above true until the returned function is called. */
export function followCrew(): () => void {
  const leaveHub = hub.start();
  let listTimer: ReturnType<typeof setTimeout> | undefined;
  const soon = () => {
    clearTimeout(listTimer);
    listTimer = setTimeout(() => {
      void refreshConversations();
      void refreshApprovals();
    }, 250);
  };
  const leaveFrames = hub.onFrame((frame) => {
    if (frame.type === "event" && frame.step?.kind !== "approval") return;
    soon();
  });
  const leaveState = hub.state.subscribe(() => {
    if (hub.state.get() === "live") void refreshAgents();
    void refreshHealth();
  });
  let healthTimer: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(healthTimer);
    const next = () => {
      const calm = outage.get() === null && health.get()?.status === "ok";
      healthTimer = setTimeout(look, calm ? HEALTH_EVERY_MS : HEALTH_WHEN_DOWN_MS);
    };
    if (document.visibilityState === "visible") void refreshHealth().then(next);
    else next();
  };
  const visible = () => {
    if (document.visibilityState !== "visible") return;
    soon();
    look();
  };
  document.addEventListener("visibilitychange", visible);
  addEventListener("online", visible);
  addEventListener("offline", visible);
  look();
  void refreshConversations();
  void refreshApprovals();
  void refreshAgents();
  void refreshSettings();
  return () => {
    leaveHub();
    leaveFrames();
    leaveState();
    clearTimeout(listTimer);
    clearTimeout(healthTimer);
    document.removeEventListener("visibilitychange", visible);
    removeEventListener("online", visible);
    removeEventListener("offline", visible);
  };
}

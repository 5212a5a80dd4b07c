/** A run and its steps in words. */

import type { Run, RunStep } from "../api/contract";
import { haltWords } from "../chat/halt-words";
import type { IconName } from "../design/Icon";
import { plainLine } from "../format/plain";
import type { Key, useText } from "../i18n";

type Text = ReturnType<typeof useText>;

const STATUS: Record<string, Key> = {
  running: "run.status.running",
  awaiting_approval: "run.status.awaiting_approval",
  done: "run.status.done",
  halted: "run.status.halted",
  error: "run.status.error",
};

export function statusWord(status: string, t: Text): string {
  const key = STATUS[status];
  return key ? t(key) : status;
}

/** What the run's summary says: codes are read as sentences only under the status that writes them (TRN-277). */
export function summaryOf(run: Run, t: Text): string {
  if (run.status === "halted") return haltWords(run.summary, t);
  if (run.status === "error" && run.summary === "interrupted") return t("run.interrupted");
  return plainLine(run.summary);
}

/** What a running run does now. */
export function nowDoing(run: Run, t: Text): string {
  if (run.status === "awaiting_approval") return t("run.now.waiting");
  const last = run.steps.at(-1);
  if (!last) return t("run.now.starting");
  if (last.ms !== null) return t("run.now.working");
  if (last.kind === "model")
    return t(last.first_token_ms === null ? "run.now.model_waits" : "run.now.model_writes");
  if (last.kind === "tool") return t("run.now.tool", { tool: last.name ?? "" });
  return t("run.now.working");
}

/** When a run began, in milliseconds: its own start is told in whole seconds, that of its first step is not. */
export function beganAt(run: Run): number {
  return Math.max(Date.parse(run.started_at), Date.parse(run.steps[0]?.started_at ?? run.started_at));
}

const SOURCES: Record<string, Key> = {
  chat: "run.source.chat",
  web: "run.source.chat",
  api: "run.source.api",
  telegram: "run.source.telegram",
};

export function sourceWord(source: string, t: Text): string {
  const key = SOURCES[source];
  if (key) return t(key);
  if (source.startsWith("job:")) return t("run.source.job", { job: source.slice(4) });
  if (source.startsWith("delegate:")) return t("run.source.delegate");
  return source;
}

const VERDICTS: Record<string, Key> = {
  free: "verdict.free",
  routine: "verdict.routine",
  autonomous: "verdict.autonomous",
  always: "verdict.always",
  approved: "verdict.approved",
  asked: "verdict.asked",
  refused: "verdict.refused",
  denied: "verdict.denied",
  expired: "verdict.expired",
  failed: "verdict.failed",
};

const NOT_RUN = ["refused", "denied", "expired", "failed"];

export type Tone = "good" | "wait" | "bad" | "calm";

export interface Badge {
  word: string;
  tone: Tone;
}

/** The badge of what the gate decided; null for a word that this page does not know. */
export function verdictBadge(verdict: string, t: Text): Badge | null {
  const key = VERDICTS[verdict];
  if (!key) return null;
  if (NOT_RUN.includes(verdict)) return { word: t(key), tone: "bad" };
  return { word: t(key), tone: verdict === "approved" ? "good" : "calm" };
}

const REVIEWS: Record<string, (t: Text) => Badge> = {
  allow: (t) => ({ word: t("review.verdict.allow"), tone: "good" }),
  ask: (t) => ({ word: t("review.verdict.ask"), tone: "wait" }),
  deny: (t) => ({ word: t("review.verdict.deny"), tone: "bad" }),
  none: (t) => ({ word: t("review.verdict.none"), tone: "calm" }),
};

/** The badge of a tool step: how the gate let it through, and how it went. */
export function badgeOf(step: RunStep, t: Text): Badge | null {
  if (step.kind === "review") return REVIEWS[step.verdict ?? ""]?.(t) ?? null;
  const verdict = step.verdict ?? "";
  if (step.ok === false && !NOT_RUN.includes(verdict)) return { word: t("verdict.failed"), tone: "bad" };
  if (verdict === "asked" && step.ms === null) return { word: t("verdict.asked"), tone: "wait" };
  return verdictBadge(verdict, t);
}

export function stepIcon(step: RunStep): IconName {
  switch (step.kind) {
    case "model":
      return "spark";
    case "tool":
      return "tool";
    case "review":
      return "eye";
    case "approval":
      return "hand";
    case "steer":
      return "edit";
    case "fallback":
      return "swap";
    case "escalation":
      return "up";
    default:
      return "note";
  }
}

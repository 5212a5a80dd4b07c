/** Tells a screen reader what happened in the open conversation; streamed text itself is not told (FLD-077). */

import { useEffect } from "react";
import type { TurnEvent } from "../api/contract";
import { text } from "../i18n";
import { alertNow, announce } from "../state/announcer";
import type { Thread } from "./thread";

const TOLD_OF_A_REPLY = 200;

/** The sentence for one event, or null for the ones that are not told. */
export function announcementOf(event: TurnEvent): { words: string; urgent: boolean } | null {
  switch (event.type) {
    case "assistant_message": {
      const words = event.message?.content.trim().slice(0, TOLD_OF_A_REPLY) ?? "";
      return words ? { words, urgent: false } : null;
    }
    case "approval_required":
      return event.approval?.kind === "question"
        ? { words: text("announce.question", { question: event.approval.summary }), urgent: true }
        : { words: text("announce.approval", { summary: event.approval?.summary ?? "" }), urgent: true };
    case "error":
      return { words: text("announce.error", { message: event.message }), urgent: true };
    case "halted":
      return { words: text("announce.halted"), urgent: true };
    default:
      return null;
  }
}

export function useAnnouncements(thread: Thread): void {
  useEffect(() => {
    let running = thread.state.get().running || thread.streaming;
    // A turn that runs already: sent from the start page, or by somebody else.
    if (running) announce(text("announce.working"));
    const leaveState = thread.state.subscribe(() => {
      const now = thread.state.get().running;
      if (now && !running) announce(text("announce.working"));
      running = now;
    });
    let told = "";
    const leaveEvents = thread.onEvent((event) => {
      const said = announcementOf(event);
      // A turn watched again tells its replies from the start.
      if (!said || said.words === told) return;
      told = said.words;
      if (said.urgent) alertNow(said.words);
      else announce(said.words);
    });
    let lost = false;
    const leaveLink = thread.link.subscribe(() => {
      const link = thread.link.get();
      if (link === "lost" && !lost) announce(text("status.lost"));
      if (link === "ok" && lost) announce(text("announce.reconnected"));
      if (link === "lost" || link === "ok") lost = link === "lost";
    });
    return () => {
      leaveState();
      leaveEvents();
      leaveLink();
    };
  }, [thread]);
}

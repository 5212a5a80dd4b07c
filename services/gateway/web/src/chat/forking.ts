/** Going on from an earlier message in a conversation of its own (GTW-236). */

import { useState } from "react";
import { conversations } from "../api/crew";
import { ApiError } from "../api/http";
import { refreshConversations } from "../state/crew";
import { go, route } from "../state/route";
import { keepDraft } from "./drafts";

export interface Forking {
  problem: ApiError | null;
  /** Branch off before this stored message and open its words for editing. */
  from: (messageId: number) => void;
}

export function useForking(conversationId: string): Forking {
  const [problem, setProblem] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);

  const fork = async (messageId: number) => {
    setBusy(true);
    setProblem(null);
    try {
      const made = await conversations.fork(conversationId, messageId);
      if (!made.conversation) return;
      keepDraft(made.conversation.id, made.text);
      await refreshConversations();
      const place = route.get();
      // Whoever went elsewhere meanwhile stays there; the branch is in the list.
      if (place.page === "conversation" && place.id === conversationId) {
        go({ page: "conversation", id: made.conversation.id });
      }
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setProblem(cause);
    } finally {
      setBusy(false);
    }
  };
  return {
    problem,
    from: (messageId) => {
      if (!busy) void fork(messageId);
    },
  };
}

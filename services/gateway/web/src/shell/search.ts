/** Asking for the conversation search, from wherever the person is (GTW-257). */

import { useEffect, useState } from "react";
import type { MessageHit } from "../api/contract";
import { messages } from "../api/crew";
import { ApiError } from "../api/http";
import { Store } from "../state/store";

export const SEARCH_FIELD_ID = "conversation-search";

/** The search was asked for by a key: its box stands also over a list too short to need one. */
export const searchAsked = new Store(false);

const PAUSE_MS = 250;
const SHORTEST_QUERY = 2;

export interface ContentSearch {
  /** What the hits were found with. */
  query: string;
  hits: readonly MessageHit[];
  failed: boolean;
}

/** What was said with these words, once the typing pauses; null while nothing is known of them (GTW-215). */
export function useContentSearch(query: string, agentId: string | undefined): ContentSearch | null {
  const [answer, setAnswer] = useState<ContentSearch | null>(null);
  const wanted = query.trim();
  useEffect(() => {
    if (wanted.length < SHORTEST_QUERY) return;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      messages
        .search(wanted, agentId, abort.signal)
        .then((hits) => setAnswer({ query: wanted, hits, failed: false }))
        .catch((cause: unknown) => {
          if (abort.signal.aborted) return;
          if (!(cause instanceof ApiError)) throw cause;
          setAnswer({ query: wanted, hits: [], failed: true });
        });
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [wanted, agentId]);
  return answer?.query === wanted ? answer : null;
}

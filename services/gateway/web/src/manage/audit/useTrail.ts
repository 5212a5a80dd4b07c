import { useCallback, useEffect, useState } from "react";
import type { AuditEntry } from "../../api/contract";
import { audit, type AuditQuery } from "../../api/crew";
import { ApiError } from "../../api/http";
import { useLoad, type Loaded } from "../useLoad";

export const PAGE_OF_ENTRIES = 100;

export interface Trail {
  loaded: Loaded<AuditEntry[]>;
  entries: readonly AuditEntry[];
  /** Older entries may exist. */
  hasMore: boolean;
  loadingMore: boolean;
  more: () => void;
}

/** The newest entries of a query, and older ones on demand. `query` must be stable between draws. */
export function useTrail(query: AuditQuery): Trail {
  const load = useCallback(() => audit.list({ ...query, limit: PAGE_OF_ENTRIES }), [query]);
  const loaded = useLoad(load);
  const [older, setOlder] = useState<{ of: readonly AuditEntry[] | null; pages: AuditEntry[][] }>({
    of: null,
    pages: [],
  });
  const [asked, setAsked] = useState<string | null>(null);
  const newest = loaded.data;
  // What was asked behind another answer does not belong to this one.
  const pages = older.of === newest ? older.pages : [];
  const entries = [...(newest ?? []), ...pages.flat()];
  const last = pages.at(-1) ?? newest ?? [];

  useEffect(() => {
    if (asked === null || newest === null) return;
    let current = true;
    audit
      .list({ ...query, limit: PAGE_OF_ENTRIES, before: asked })
      .then((page) => {
        if (!current) return;
        setOlder((known) => ({ of: newest, pages: [...(known.of === newest ? known.pages : []), page] }));
        setAsked(null);
      })
      .catch((cause: unknown) => {
        if (!(cause instanceof ApiError)) throw cause;
        if (current) setAsked(null);
      });
    return () => {
      current = false;
    };
  }, [asked, newest, query]);

  return {
    loaded,
    entries,
    hasMore: last.length >= PAGE_OF_ENTRIES,
    loadingMore: asked !== null,
    more: () => setAsked(entries.at(-1)?.id ?? null),
  };
}

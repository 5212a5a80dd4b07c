/** The activity of one conversation: a column where there is room, else a strip over the composer (GTW-230). */

import { useEffect, useMemo, useState } from "react";
import { hub, isLive, newestFirst } from "../activity/hub";
import type { Run } from "../api/contract";
import { runs as runsApi } from "../api/crew";
import { ApiError } from "../api/http";
import { Dialog } from "../design/Dialog";
import { Icon } from "../design/Icon";
import { useText } from "../i18n";
import { useStore } from "../state/store";
import { nowDoing, statusWord } from "./run-words";
import { RunCard, RunFigures, RunIcon } from "./RunCard";

const SHOWN = 30;

/** The conversation's runs, newest first; fetched once and then kept true by the activity stream. */
export function useRunsOf(conversationId: string): Run[] {
  const all = useStore(hub.runs);
  const state = useStore(hub.state);
  useEffect(() => {
    if (state === "lost") return;
    runsApi
      .list({ conversation_id: conversationId, limit: SHOWN })
      .then((fetched) => hub.take(fetched))
      .catch((cause: unknown) => {
        if (!(cause instanceof ApiError)) throw cause;
      });
  }, [conversationId, state]);
  return useMemo(
    () =>
      [...all.values()]
        .filter((run) => run.conversation_id === conversationId)
        .sort(newestFirst)
        .slice(0, SHOWN),
    [all, conversationId],
  );
}

export function RunColumn({ conversationId }: { conversationId: string }) {
  const t = useText();
  const found = useRunsOf(conversationId);
  return (
    <aside className="run-column" aria-label={t("run.column")}>
      <h2 className="column-title">{t("run.column")}</h2>
      {found.length === 0 ? (
        <p className="muted column-empty">{t("run.column_empty")}</p>
      ) : (
        found.map((run, index) => <RunCard key={run.id} run={run} opened={index === 0} />)
      )}
    </aside>
  );
}

export function RunStrip({ conversationId }: { conversationId: string }) {
  const t = useText();
  const found = useRunsOf(conversationId);
  const [open, setOpen] = useState(false);
  const latest = found[0];
  if (!latest) return null;
  return (
    <>
      <button type="button" className={`run-strip run-strip-${latest.status}`} onClick={() => setOpen(true)}>
        <RunIcon run={latest} />
        <span className="run-what">
          {isLive(latest) ? nowDoing(latest, t) : statusWord(latest.status, t)}
        </span>
        <RunFigures run={latest} />
        <Icon name="chevron" />
      </button>
      {open && (
        <Dialog title={t("run.column")} className="sheet" onClose={() => setOpen(false)}>
          <div className="sheet-scroll">
            {found.map((run, index) => (
              <RunCard key={run.id} run={run} opened={index === 0} />
            ))}
          </div>
        </Dialog>
      )}
    </>
  );
}

import type { ReactNode } from "react";
import type { Run } from "../api/contract";
import { isLive } from "../activity/hub";
import { useText } from "../i18n";
import { RunFigures, RunIcon } from "../runs/RunCard";
import { nowDoing, sourceWord, statusWord, summaryOf } from "../runs/run-words";
import { agentName } from "../state/crew";
import { hrefOf } from "../state/route";

/** One run as a line that leads to its page. */
export function RunRow({ run, children }: { run: Run; children?: ReactNode }) {
  const t = useText();
  return (
    <li className={`run-row run-${run.status}`}>
      <a className="run-row-link" href={hrefOf({ page: "manage", section: "activity", item: run.id })}>
        <RunIcon run={run} />
        <span className="run-row-words">
          <span className="run-what">
            {isLive(run) ? nowDoing(run, t) : summaryOf(run, t) || statusWord(run.status, t)}
          </span>
          <span className="run-row-meta">
            <span>{agentName(run.agent_id)}</span>
            <span>{sourceWord(run.source, t)}</span>
            <span>{statusWord(run.status, t)}</span>
          </span>
        </span>
        <RunFigures run={run} />
      </a>
      {children}
    </li>
  );
}

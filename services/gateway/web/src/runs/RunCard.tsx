/** One run: a line while it runs, its timeline when opened. */

import { useEffect, useState } from "react";
import { hub, isLive } from "../activity/hub";
import type { Run } from "../api/contract";
import { runs as runsApi } from "../api/crew";
import { ApiError } from "../api/http";
import { Icon, Spinner, type IconName } from "../design/Icon";
import { Time } from "../design/Time";
import { money } from "../format/money";
import { duration, elapsed } from "../format/time";
import { useText } from "../i18n";
import { useNow } from "../state/clock";
import { beganAt, nowDoing, statusWord, summaryOf } from "./run-words";
import { Timeline } from "./Timeline";

interface Props {
  run: Run;
  /** Open until the person closes it. */
  opened?: boolean;
}

export function RunCard({ run, opened = false }: Props) {
  const t = useText();
  const live = isLive(run);
  const [chosen, setChosen] = useState<boolean | null>(null);
  const open = chosen ?? (opened || live);
  useSteps(run, open);
  return (
    <section className={`run run-${run.status}`} aria-label={t("run.label")}>
      <button type="button" className="run-head" aria-expanded={open} onClick={() => setChosen(!open)}>
        <RunIcon run={run} />
        <span className="run-line">
          <span className="run-what">
            {live ? nowDoing(run, t) : summaryOf(run, t) || statusWord(run.status, t)}
          </span>
          <RunFigures run={run} />
        </span>
        <Icon name="chevron" />
      </button>
      {open && <Timeline steps={run.steps} live={live} />}
    </section>
  );
}

/** Lists may come without steps: an opened card asks for its own. */
export function useSteps(run: Run, open: boolean): void {
  const needed = open && run.steps.length === 0 && !isLive(run);
  useEffect(() => {
    if (!needed) return;
    runsApi
      .get(run.id)
      .then((whole) => hub.take([whole]))
      .catch((cause: unknown) => {
        if (!(cause instanceof ApiError)) throw cause;
      });
  }, [needed, run.id]);
}

const ICONS: Record<string, IconName> = {
  awaiting_approval: "hand",
  done: "check",
  halted: "alert",
  error: "failed",
};

export function RunIcon({ run }: { run: Run }) {
  const t = useText();
  return (
    <span className={`run-icon run-icon-${run.status}`}>
      {run.status === "running" ? <Spinner /> : <Icon name={ICONS[run.status] ?? "pulse"} />}
      <span className="visually-hidden">{statusWord(run.status, t)}</span>
    </span>
  );
}

/** Elapsed time, steps and money; no percentage, nobody knows what is left. */
export function RunFigures({ run }: { run: Run }) {
  const t = useText();
  const steps = run.steps.filter((step) => step.kind === "model" || step.kind === "tool");
  const finished = steps.filter((step) => step.ms !== null).length;
  const live = isLive(run);
  return (
    <span className="run-figures">
      {live ? (
        <Elapsed since={run.started_at} />
      ) : (
        run.finished_at && <span>{duration(Date.parse(run.finished_at) - beganAt(run))}</span>
      )}
      {live && steps.length > 0 && (
        <span>
          {finished}/{steps.length}
        </span>
      )}
      <span>
        {money(run.cost_usd)}
        {run.unknown_cost_calls > 0 && ` + ${t("run.cost_unknown")}`}
      </span>
      {!live && <Time iso={run.finished_at ?? run.started_at} />}
    </span>
  );
}

function Elapsed({ since }: { since: string }) {
  const now = useNow();
  return <span>{elapsed(now - Date.parse(since))}</span>;
}

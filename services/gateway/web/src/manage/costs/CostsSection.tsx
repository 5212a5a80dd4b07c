/** What models cost: today and seven days, and by whom and for what (GTW-243). */

import { useEffect, useMemo } from "react";
import { hub } from "../../activity/hub";
import type { StatsReply } from "../../api/contract";
import { system } from "../../api/crew";
import { compact } from "../../format/count";
import { usePlural, useLanguage, useText, type Key } from "../../i18n";
import { useNow } from "../../state/clock";
import { agentName, agents } from "../../state/crew";
import { useStore } from "../../state/store";
import { LoadProblem, Panel, SectionHead } from "../Section";
import { useLoad } from "../useLoad";
import { Breakdown, type Line } from "./Breakdown";
import { Budgets } from "./Budgets";
import { Cost } from "./Cost";
import { byDay, cacheShare, lastDays, sum, type Spent } from "./sums";

const WEEK = 7;

const PURPOSES: Record<string, Key> = {
  turn: "costs.purpose.turn",
  title: "costs.purpose.title",
  recap: "costs.purpose.recap",
  compact: "costs.purpose.compact",
  review: "costs.purpose.review",
  script: "costs.purpose.script",
};

export function CostsSection() {
  const t = useText();
  const loaded = useLoad(system.stats);
  const { again } = loaded;
  // A run that ended has spent something.
  useEffect(
    () =>
      hub.onFrame((frame) => {
        if (frame.type === "run" && frame.run?.finished_at) again();
      }),
    [again],
  );
  return (
    <div className="section">
      <SectionHead title={t("manage.costs")} hint={t("costs.hint")} />
      <LoadProblem loaded={loaded} />
      {loaded.data === null && !loaded.error && <p className="panel-empty">{t("common.loading")}</p>}
      {loaded.data && <Figures stats={loaded.data} />}
    </div>
  );
}

function Figures({ stats }: { stats: StatsReply }) {
  const t = useText();
  const language = useLanguage();
  const now = useNow(60);
  useStore(agents);
  const days = useMemo(() => {
    return byDay(stats.days, lastDays(WEEK, now, stats.timezone));
  }, [stats, now]);
  const today = days.slice(-1);
  const name = new Intl.DateTimeFormat(language, {
    weekday: "short",
    day: "numeric",
    month: "short",
    timeZone: "UTC",
  });
  const elsewhere =
    stats.timezone !== "" && stats.timezone !== Intl.DateTimeFormat().resolvedOptions().timeZone;

  const ofDays: Line[] = days
    .map((row, index) => ({
      key: row.day,
      name: index === days.length - 1 ? t("day.today") : name.format(Date.parse(`${row.day}T12:00:00Z`)),
      spent: row,
    }))
    .reverse();
  const cached = new Map(stats.cache_by_agent.map((row) => [row.agent_id, cacheShare(row)]));
  const ofAgents = stats.by_agent.map((row) => ({
    key: row.agent_id,
    name: agentName(row.agent_id),
    spent: row,
    cached: cached.get(row.agent_id) ?? null,
  }));
  const ofModels = stats.models.map((row) => ({
    key: `${row.provider}:${row.model}`,
    name: row.model,
    under: row.provider,
    spent: row,
  }));
  const ofPurposes = stats.purposes.map((row) => ({
    key: row.purpose,
    name: PURPOSES[row.purpose] ? t(PURPOSES[row.purpose] as Key) : row.purpose,
    spent: row,
  }));

  return (
    <>
      <div className="totals">
        <Total title={t("day.today")} spent={sum(today)} />
        <Total title={t("costs.seven_days")} spent={sum(days)} />
      </div>
      <Budgets />
      <Panel
        title={t("costs.by_day")}
        {...(elsewhere ? { hint: t("costs.zone", { zone: stats.timezone }) } : {})}
      >
        <Breakdown lines={ofDays} inOrder />
      </Panel>
      {stats.by_agent.length === 0 ? (
        <p className="panel-empty">{t("costs.empty")}</p>
      ) : (
        <>
          <Panel title={t("costs.by_agent")} hint={t("costs.ever")}>
            <Breakdown lines={ofAgents} />
          </Panel>
          <Panel title={t("costs.by_model")} hint={t("costs.ever")}>
            <Breakdown lines={ofModels} />
          </Panel>
          <Panel title={t("costs.by_purpose")} hint={t("costs.ever")}>
            <Breakdown lines={ofPurposes} />
          </Panel>
        </>
      )}
    </>
  );
}

function Total({ title, spent }: { title: string; spent: Spent }) {
  const t = useText();
  const plural = usePlural();
  const share = cacheShare(spent);
  return (
    <section className="total" aria-label={title}>
      <h2>{title}</h2>
      <p className="total-figure">
        <Cost spent={spent} />
      </p>
      <p className="total-facts">
        <span>{plural("costs.calls.one", "costs.calls.other", spent.calls)}</span>
        <span>
          {t("costs.tokens", {
            sent: compact(spent.prompt_tokens),
            got: compact(spent.completion_tokens),
          })}
        </span>
        {share !== null && <span>{t("costs.cached", { share: Math.round(share * 100) })}</span>}
      </p>
      {spent.unknown_cost_calls > 0 && (
        <p className="total-flag">
          {plural("costs.unpriced.one", "costs.unpriced.other", spent.unknown_cost_calls)}
        </p>
      )}
    </section>
  );
}

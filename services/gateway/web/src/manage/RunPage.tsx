import { useCallback, useEffect } from "react";
import { hub, isLive } from "../activity/hub";
import { runs as runsApi } from "../api/crew";
import { Icon } from "../design/Icon";
import { money } from "../format/money";
import { duration, exact } from "../format/time";
import { useLanguage, useText } from "../i18n";
import { RunIcon } from "../runs/RunCard";
import { beganAt, nowDoing, sourceWord, statusWord, summaryOf } from "../runs/run-words";
import { Timeline } from "../runs/Timeline";
import { useNow } from "../state/clock";
import { agentName } from "../state/crew";
import { hrefOf } from "../state/route";
import { useStore } from "../state/store";
import { RunExport } from "./RunExport";
import { LoadProblem, Panel } from "./Section";
import { useLoad } from "./useLoad";

/** One run by its address (GTW-241). */
export function RunPage({ id }: { id: string }) {
  const t = useText();
  const language = useLanguage();
  const load = useCallback(() => runsApi.get(id), [id]);
  const loaded = useLoad(load);
  const told = useStore(hub.runs).get(id);
  useEffect(() => {
    if (loaded.data) hub.take([loaded.data]);
  }, [loaded.data]);
  const now = useNow();
  const run = told ?? loaded.data;

  return (
    <div className="section">
      <a className="back-link" href={hrefOf({ page: "manage", section: "activity", item: null })}>
        <Icon name="back" size={14} />
        {t("manage.activity")}
      </a>
      <LoadProblem loaded={loaded} />
      {!run && !loaded.error && <p className="panel-empty">{t("common.loading")}</p>}
      {run && (
        <>
          <header className="section-head run-page-head">
            <RunIcon run={run} />
            <div>
              <h1>{isLive(run) ? nowDoing(run, t) : summaryOf(run, t) || statusWord(run.status, t)}</h1>
              <p className="run-row-meta">
                <span>{agentName(run.agent_id)}</span>
                <span>{sourceWord(run.source, t)}</span>
                <a href={hrefOf({ page: "conversation", id: run.conversation_id })}>
                  {t("run.open_conversation")}
                </a>
              </p>
            </div>
          </header>
          <dl className="facts">
            <Fact name={t("run.fact.status")} value={statusWord(run.status, t)} />
            <Fact name={t("run.fact.started")} value={exact(run.started_at, language)} />
            <Fact
              name={t("run.fact.took")}
              value={duration((run.finished_at ? Date.parse(run.finished_at) : now) - beganAt(run))}
            />
            <Fact
              name={t("run.fact.cost")}
              value={
                run.unknown_cost_calls > 0
                  ? `${money(run.cost_usd)} + ${t("run.cost_unknown")}`
                  : money(run.cost_usd)
              }
            />
            <Fact name={t("run.fact.steps")} value={String(run.steps.length)} />
          </dl>
          <Panel title={t("run.timeline")}>
            <Timeline steps={run.steps} live={isLive(run)} />
          </Panel>
          {!isLive(run) && <RunExport id={id} />}
        </>
      )}
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

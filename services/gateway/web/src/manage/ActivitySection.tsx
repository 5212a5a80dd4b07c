import { useCallback, useEffect, useMemo, useState } from "react";
import { hub, isLive, newestFirst } from "../activity/hub";
import { runs as runsApi } from "../api/crew";
import { Button } from "../design/Button";
import { Select } from "../design/Select";
import { useText, type Key } from "../i18n";
import { sourceWord, statusWord } from "../runs/run-words";
import { agents } from "../state/crew";
import { recallJson, remember } from "../state/device";
import { useStore } from "../state/store";
import { RunRow } from "./RunRow";
import { LoadProblem, Panel, SectionHead } from "./Section";
import { markFailureSeen, needsYou, useSeenFailures } from "./seen-failures";
import { useLoad } from "./useLoad";

const PAGES = [100, 200, 500];
const STATUSES = ["done", "halted", "error"];

interface Filters {
  agent: string;
  status: string;
  source: string;
}

const NO_FILTERS: Filters = { agent: "", status: "", source: "" };

export function ActivitySection() {
  const t = useText();
  const crew = useStore(agents);
  const known = useStore(hub.runs);
  const seen = useSeenFailures();
  const [limit, setLimit] = useState(PAGES[0] ?? 100);
  const [filters, setFilters] = useState<Filters>(() => ({
    ...NO_FILTERS,
    ...recallJson("activity-filters", {}),
  }));
  const { agent, status, source } = filters;
  const load = useCallback(
    () => runsApi.list({ ...(agent ? { agent_id: agent } : {}), limit }),
    [agent, limit],
  );
  const loaded = useLoad(load);
  useEffect(() => {
    if (loaded.data) hub.take(loaded.data);
  }, [loaded.data]);

  const change = (part: Partial<Filters>) => {
    const next = { ...filters, ...part };
    setFilters(next);
    remember("activity-filters", JSON.stringify(next));
  };

  const all = useMemo(
    () => [...known.values()].filter((run) => !agent || run.agent_id === agent).sort(newestFirst),
    [known, agent],
  );
  const live = all.filter(isLive);
  const urgent = needsYou(all, seen);
  const sources = [...new Set(all.map((run) => run.source))].sort();
  const history = all
    .filter((run) => !isLive(run) && (!status || run.status === status) && (!source || run.source === source))
    .slice(0, limit);
  const nextPage = PAGES.find((size) => size > limit);

  return (
    <div className="section">
      <SectionHead title={t("manage.activity")} hint={t("activity.hint")} />
      <LoadProblem loaded={loaded} />
      {urgent.length > 0 && (
        <Panel title={t("activity.needs_you")}>
          <ul className="run-rows">
            {urgent.slice(0, 20).map((run) => (
              <RunRow key={run.id} run={run}>
                <Button look="quiet" icon="check" onClick={() => markFailureSeen(run.id)}>
                  {t("activity.seen")}
                </Button>
              </RunRow>
            ))}
          </ul>
        </Panel>
      )}
      {live.length > 0 && (
        <Panel title={t("activity.running")}>
          <ul className="run-rows">
            {live.map((run) => (
              <RunRow key={run.id} run={run} />
            ))}
          </ul>
        </Panel>
      )}
      <Panel title={t("activity.history")}>
        <div className="filters">
          {crew.length > 1 && (
            <Select
              label={t("activity.filter.agent")}
              every={t("activity.filter.every_agent")}
              value={agent}
              options={crew.map(({ id, name }) => ({ value: id, words: name || id }))}
              onChange={(value) => change({ agent: value })}
            />
          )}
          <Select
            label={t("activity.filter.status")}
            every={t("activity.filter.every_status")}
            value={status}
            options={STATUSES.map((value) => ({ value, words: statusWord(value, t) }))}
            onChange={(value) => change({ status: value })}
          />
          <Select
            label={t("activity.filter.source")}
            every={t("activity.filter.every_source")}
            value={source}
            options={sources.map((value) => ({ value, words: sourceWord(value, t) }))}
            onChange={(value) => change({ source: value })}
          />
        </div>
        {history.length > 0 ? (
          <ul className="run-rows">
            {history.map((run) => (
              <RunRow key={run.id} run={run} />
            ))}
          </ul>
        ) : (
          <p className="panel-empty">{t(emptyWords(loaded.data === null, status || source))}</p>
        )}
        {nextPage !== undefined && (loaded.data?.length ?? 0) >= limit && (
          <Button look="quiet" onClick={() => setLimit(nextPage)}>
            {t("common.show_more")}
          </Button>
        )}
      </Panel>
    </div>
  );
}

function emptyWords(loading: boolean, filtered: string): Key {
  if (loading) return "common.loading";
  return filtered ? "activity.none_match" : "activity.empty";
}

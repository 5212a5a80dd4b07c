/** Every call that could change something, why it was let through and what came of it. */

import { useMemo, useState } from "react";
import { crew } from "../../api/crew";
import { Button } from "../../design/Button";
import { Select } from "../../design/Select";
import { Switch } from "../../design/Switch";
import { useText } from "../../i18n";
import { agents } from "../../state/crew";
import { useSettled } from "../../state/settled";
import { useStore } from "../../state/store";
import { LoadProblem, Panel, SectionHead } from "../Section";
import { useLoad } from "../useLoad";
import { Entry } from "./Entry";
import { useTrail } from "./useTrail";

const TYPING_PAUSE_MS = 250;
const NO_FILTERS = { tool: "", agent_id: "", day: "", text: "" };

export function AuditSection() {
  const t = useText();
  const everyAgent = useStore(agents);
  const tools = useLoad(crew.tools);
  const [filters, setFilters] = useState(NO_FILTERS);
  const [reads, setReads] = useState(false);
  const settled = useSettled(filters, TYPING_PAUSE_MS);
  const query = useMemo(() => ({ ...settled, reads: reads ? "true" : "" }), [settled, reads]);
  const trail = useTrail(query);
  const { loaded, entries } = trail;
  const filtered = Object.values(filters).some(Boolean);
  const change = (part: Partial<typeof NO_FILTERS>) => setFilters({ ...filters, ...part });

  return (
    <div className="section">
      <SectionHead title={t("manage.audit")} hint={t("audit.hint")} />
      <LoadProblem loaded={loaded} />
      <Panel title={t("audit.calls")}>
        <div className="filters" role="search" aria-label={t("audit.filters")}>
          <input
            className="field filter-words"
            type="search"
            value={filters.text}
            placeholder={t("audit.filter.text")}
            aria-label={t("audit.filter.text")}
            onChange={(event) => change({ text: event.target.value })}
          />
          <Select
            label={t("audit.filter.tool")}
            every={t("audit.filter.every_tool")}
            value={filters.tool}
            options={(tools.data ?? []).map(({ name }) => ({ value: name, words: name }))}
            onChange={(tool) => change({ tool })}
          />
          {everyAgent.length > 1 && (
            <Select
              label={t("activity.filter.agent")}
              every={t("activity.filter.every_agent")}
              value={filters.agent_id}
              options={everyAgent.map(({ id, name }) => ({ value: id, words: name || id }))}
              onChange={(agent_id) => change({ agent_id })}
            />
          )}
          <input
            className="field filter-day"
            type="date"
            value={filters.day}
            aria-label={t("audit.filter.day")}
            onChange={(event) => change({ day: event.target.value })}
          />
        </div>
        <Switch on={reads} label={t("audit.reads")} hint={t("audit.reads_hint")} onChange={setReads} />
        {entries.length > 0 ? (
          <ul className="decided">
            {entries.map((entry) => (
              <Entry key={entry.id} entry={entry} />
            ))}
          </ul>
        ) : (
          !loaded.error && (
            <p className="panel-empty" role="status">
              {t(loaded.data === null ? "common.loading" : filtered ? "audit.none_match" : "audit.empty")}
            </p>
          )
        )}
        {trail.hasMore && (
          <Button look="quiet" disabled={trail.loadingMore} onClick={trail.more}>
            {t("common.show_more")}
          </Button>
        )}
      </Panel>
    </div>
  );
}

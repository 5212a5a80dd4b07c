/** Who is in the crew, the master first (GTW-244). */

import { hub } from "../../activity/hub";
import { Icon } from "../../design/Icon";
import { usePlural, useText } from "../../i18n";
import { agents, masterFirst } from "../../state/crew";
import { hrefOf } from "../../state/route";
import { useStore } from "../../state/store";
import { SectionHead } from "../Section";
import { AgentBadges } from "./AgentBadges";

export function CrewSection() {
  const t = useText();
  const plural = usePlural();
  const everyAgent = masterFirst(useStore(agents));
  const runs = [...useStore(hub.runs).values()];
  return (
    <div className="section">
      <SectionHead title={t("manage.crew")} hint={t("crew.hint")} />
      {everyAgent.length === 0 && <p className="panel-empty">{t("common.loading")}</p>}
      <ul className="agents">
        {everyAgent.map((agent) => (
          <li key={agent.id}>
            <a className="agent-card" href={hrefOf({ page: "manage", section: "crew", item: agent.id })}>
              <span className="agent-head">
                <span className="agent-name">{agent.name || agent.id}</span>
                <AgentBadges
                  agent={agent}
                  live={runs.some((run) => run.agent_id === agent.id && run.status === "running")}
                />
                <Icon name="chevron" />
              </span>
              {agent.description && <span className="agent-words">{agent.description}</span>}
              <span className="agent-facts">
                <span>{plural("crew.tools.one", "crew.tools.other", agent.tools.length)}</span>
                {agent.routes[0] && <span className="mono">{agent.routes[0]}</span>}
              </span>
              {agent.warnings.length > 0 && (
                <span className="agent-warning">
                  <Icon name="alert" size={14} />
                  <span>{agent.warnings[0]}</span>
                </span>
              )}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

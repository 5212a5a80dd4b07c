import { useCallback, type ReactNode } from "react";
import { hub } from "../../activity/hub";
import { crew } from "../../api/crew";
import { CopyButton } from "../../design/CopyButton";
import { Fold } from "../../design/Fold";
import { Icon } from "../../design/Icon";
import { limit } from "../../format/money";
import { useText } from "../../i18n";
import { agents } from "../../state/crew";
import { hrefOf } from "../../state/route";
import { useStore } from "../../state/store";
import { LoadProblem, Panel } from "../Section";
import { useLoad } from "../useLoad";
import { AgentBadges } from "./AgentBadges";

/** One agent: what it is told, what it may use, and what is wrong with its files. */
export function AgentPage({ id }: { id: string }) {
  const t = useText();
  const load = useCallback(() => crew.agent(id), [id]);
  const loaded = useLoad(load);
  const told = useStore(agents).find((agent) => agent.id === id);
  const agent = loaded.data ?? told;
  const live = [...useStore(hub.runs).values()].some(
    (run) => run.agent_id === id && run.status === "running",
  );
  return (
    <div className="section">
      <a className="back-link" href={hrefOf({ page: "manage", section: "crew", item: null })}>
        <Icon name="back" size={14} />
        {t("manage.crew")}
      </a>
      <LoadProblem loaded={loaded} />
      {!agent && !loaded.error && <p className="panel-empty">{t("common.loading")}</p>}
      {agent && (
        <>
          <header className="section-head">
            <div>
              <h1>{agent.name || agent.id}</h1>
              {agent.description && <p className="muted">{agent.description}</p>}
            </div>
            <AgentBadges agent={agent} live={live} />
          </header>
          {agent.warnings.map((warning) => (
            <p key={warning} className="note-line note-halted">
              <Icon name="alert" />
              <span>{warning}</span>
            </p>
          ))}
          <dl className="facts">
            <Fact name={t("crew.max_steps")}>{agent.max_steps}</Fact>
            <Fact name={t("crew.cap")}>
              {agent.cost_cap_usd > 0 ? limit(agent.cost_cap_usd) : t("spend.no_cap")}
            </Fact>
            <Fact name={t("crew.escalation")}>
              {agent.escalation_route ? (
                <span className="mono">{agent.escalation_route}</span>
              ) : (
                t("crew.no_escalation")
              )}
            </Fact>
            {agent.workspace && (
              <Fact name={t("crew.workspace")}>
                <span className="mono">{agent.workspace}</span>
              </Fact>
            )}
          </dl>
          <Panel title={t("connections.routes")} hint={t("crew.routes_hint")}>
            {agent.routes.length === 0 ? (
              <p className="panel-empty">{t("connections.no_routes")}</p>
            ) : (
              <ol className="state-rows">
                {agent.routes.map((route, index) => (
                  <li key={route} className="state-row">
                    <span className="state-place">{index + 1}</span>
                    <span className="state-name mono">{route}</span>
                  </li>
                ))}
              </ol>
            )}
          </Panel>
          <Panel title={t("manage.tools")} hint={t("crew.tools_hint")}>
            {agent.tools.length === 0 ? (
              <p className="panel-empty">{t("crew.no_tools")}</p>
            ) : (
              <ul className="tool-names">
                {agent.tools.map((tool) => (
                  <li key={tool}>
                    <code>{tool}</code>
                  </li>
                ))}
              </ul>
            )}
          </Panel>
          <Prompt id={id} />
        </>
      )}
    </div>
  );
}

function Prompt({ id }: { id: string }) {
  const t = useText();
  const load = useCallback(() => crew.prompt(id), [id]);
  const loaded = useLoad(load);
  const { data } = loaded;
  return (
    <>
      <LoadProblem loaded={loaded} />
      {data && (
        <>
          <Text
            title={t("crew.prompt")}
            hint={t("crew.prompt_hint", {
              n: data.prompt_chars.toLocaleString(),
              files: data.persona_names.join(", ") || "–",
            })}
            text={data.prompt}
          />
          {data.opening && (
            <Text
              title={t("crew.opening")}
              hint={t("crew.opening_hint", { n: data.opening_chars.toLocaleString() })}
              text={data.opening}
            />
          )}
        </>
      )}
    </>
  );
}

function Text({ title, hint, text }: { title: string; hint: string; text: string }) {
  return (
    <Panel title={title} hint={hint}>
      <div className="told-text">
        <CopyButton text={() => text} />
        <Fold text={text}>
          <pre tabIndex={0} aria-label={title}>
            {text}
          </pre>
        </Fold>
      </div>
    </Panel>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

import type { Agent, Tool } from "../../api/contract";
import { crew } from "../../api/crew";
import { Icon } from "../../design/Icon";
import { useText } from "../../i18n";
import { agents } from "../../state/crew";
import { useStore } from "../../state/store";
import { LoadProblem, Panel } from "../Section";
import { useLoad } from "../useLoad";

/** The tools of each host by agent: one row a tool, one column an agent. */
export function Matrix() {
  const t = useText();
  const everyAgent = useStore(agents);
  const loaded = useLoad(crew.tools);
  const { data } = loaded;
  const hosts = [...new Set((data ?? []).map(({ host }) => host))];
  return (
    <>
      <LoadProblem loaded={loaded} />
      {data === null && !loaded.error && <p className="panel-empty">{t("common.loading")}</p>}
      {data?.length === 0 && <p className="panel-empty">{t("tools.none")}</p>}
      {hosts.map((host) => (
        <Panel key={host} title={t("tools.of_host", { host: host || t("tools.own") })}>
          <HostTools
            label={t("tools.of_host", { host: host || t("tools.own") })}
            tools={(data ?? []).filter((tool) => tool.host === host)}
            agents={everyAgent}
          />
        </Panel>
      ))}
      {data !== null && data.length > 0 && (
        <p className="legend">
          <span>
            <Icon name="check" size={14} /> {t("tools.legend.holds")}
          </span>
          <span>
            <span aria-hidden="true">–</span> {t("tools.legend.lacks")}
          </span>
          <span>
            <Icon name="hand" size={14} /> {t("tools.legend.asks")}
          </span>
        </p>
      )}
    </>
  );
}

function HostTools({
  label,
  tools,
  agents: columns,
}: {
  label: string;
  tools: readonly Tool[];
  agents: readonly Agent[];
}) {
  const t = useText();
  return (
    <div className="table-scroll matrix" tabIndex={0} role="group" aria-label={label}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t("tools.tool")}</th>
            {columns.map((agent) => (
              <th key={agent.id} scope="col" className="cell-center">
                {agent.name || agent.id}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {tools.map((tool) => (
            <tr key={tool.name}>
              <th scope="row">
                <span className="matrix-tool">
                  <code>{tool.name}</code>
                  {tool.requires_approval && (
                    <span className="state state-wait" title={t("tools.legend.asks")}>
                      <Icon name="hand" size={14} />
                      <span className="visually-hidden">{t("tools.legend.asks")}</span>
                    </span>
                  )}
                </span>
                <span className="matrix-words" title={tool.description}>
                  {firstSentence(tool.description)}
                </span>
              </th>
              {columns.map((agent) => (
                <td key={agent.id} className="cell-center">
                  {tool.agents.includes(agent.id) ? (
                    <span className="state state-good">
                      <Icon name="check" />
                      <span className="visually-hidden">{t("tools.legend.holds")}</span>
                    </span>
                  ) : (
                    <span className="muted">
                      <span aria-hidden="true">–</span>
                      <span className="visually-hidden">{t("tools.legend.lacks")}</span>
                    </span>
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Descriptions are written for models and long: their first sentence tells a person what the tool is. */
function firstSentence(description: string): string {
  return /^[\s\S]*?[.!?](?=\s|$)/.exec(description)?.[0] ?? description;
}

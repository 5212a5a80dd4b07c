import { useCallback, useState } from "react";
import type { Count, DescriptionFaults, ToolUse } from "../../api/contract";
import { stats } from "../../api/crew";
import { Segmented } from "../../design/Segmented";
import { bytes } from "../../format/bytes";
import { duration } from "../../format/time";
import { useText, type Key } from "../../i18n";
import { agentName, agents } from "../../state/crew";
import { useStore } from "../../state/store";
import { LoadProblem, Panel } from "../Section";
import { useLoad } from "../useLoad";

const DAYS = [1, 7, 30, 90];

const KINDS: Record<string, Key> = {
  arguments: "tools.failure.arguments",
  blocked: "tools.failure.blocked",
  timeout: "tools.failure.timeout",
  limit: "tools.failure.limit",
  unavailable: "tools.failure.unavailable",
  crash: "tools.failure.crash",
  cancelled: "tools.failure.cancelled",
  interrupted: "tools.failure.interrupted",
  closed: "tools.failure.closed",
  tool: "tools.failure.tool",
};

/** How often tools ran, how long they took, how they failed, and where their descriptions mislead. */
export function Figures() {
  const t = useText();
  const [days, setDays] = useState(7);
  const load = useCallback(() => stats.tools(days), [days]);
  const loaded = useLoad(load);
  useStore(agents);
  const { data } = loaded;
  return (
    <>
      <Segmented
        label={t("tools.days")}
        value={days}
        options={DAYS.map((value) => ({
          value,
          words: value === 1 ? t("day.today") : t("tools.last_days", { n: value }),
        }))}
        onChange={setDays}
      />
      <LoadProblem loaded={loaded} />
      {data === null && !loaded.error && <p className="panel-empty">{t("common.loading")}</p>}
      {data && (
        <>
          <Panel title={t("tools.uses")}>
            {data.uses.length === 0 ? (
              <p className="panel-empty">{t("tools.uses_empty")}</p>
            ) : (
              <Uses uses={data.uses} />
            )}
          </Panel>
          <Panel title={t("tools.descriptions")} hint={t("tools.descriptions_hint")}>
            {data.descriptions.length === 0 ? (
              <p className="panel-empty">{t("tools.descriptions_empty")}</p>
            ) : (
              <ul>
                {data.descriptions.map((faults) => (
                  <Faults key={faults.tool} faults={faults} />
                ))}
              </ul>
            )}
          </Panel>
        </>
      )}
    </>
  );
}

function Uses({ uses }: { uses: readonly ToolUse[] }) {
  const t = useText();
  return (
    <div className="table-scroll figures" tabIndex={0} role="group" aria-label={t("tools.uses")}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t("tools.tool")}</th>
            <th scope="col" className="cell-right">
              {t("tools.calls")}
            </th>
            <th scope="col">{t("tools.failed")}</th>
            <th scope="col" className="cell-right">
              {t("tools.refused")}
            </th>
            <th scope="col" className="cell-right">
              {t("tools.median")}
            </th>
            <th scope="col" className="cell-right">
              {t("tools.p95")}
            </th>
            <th scope="col" className="cell-right">
              {t("tools.bytes")}
            </th>
          </tr>
        </thead>
        <tbody>
          {uses.map((use) => (
            <tr key={`${use.tool} ${use.agent_id}`}>
              <th scope="row">
                <code>{use.tool}</code>
                <span className="matrix-words">{agentName(use.agent_id)}</span>
              </th>
              <td className="cell-right">{use.calls.toLocaleString()}</td>
              <td>
                <Failures use={use} />
              </td>
              <td className="cell-right">{use.refusals || <Nothing />}</td>
              <td className="cell-right">{use.p50_ms === null ? <Nothing /> : duration(use.p50_ms)}</td>
              <td className="cell-right">{use.p95_ms === null ? <Nothing /> : duration(use.p95_ms)}</td>
              <td className="cell-right">{bytes(use.bytes_in + use.bytes_out)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Nothing() {
  return <span className="muted">–</span>;
}

function Failures({ use }: { use: ToolUse }) {
  const t = useText();
  const total = use.failures.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return <Nothing />;
  const rate = Math.max(1, Math.round((100 * total) / use.calls));
  return (
    <>
      <span className="figure-bad">
        {total.toLocaleString()} ({rate} %)
      </span>
      <span className="matrix-words">
        {use.failures
          .map(({ name, count }) => `${KINDS[name] ? t(KINDS[name]) : name} ${count.toLocaleString()}`)
          .join(", ")}
      </span>
    </>
  );
}

function Faults({ faults }: { faults: DescriptionFaults }) {
  const t = useText();
  const listed = (counts: readonly Count[]) =>
    counts
      .map(({ name, count }) => `${name || t("tools.fault.unreadable")} (${count.toLocaleString()})`)
      .join(", ");
  const lines = [
    faults.parameters.length > 0 && t("tools.fault.parameters", { names: listed(faults.parameters) }),
    faults.unknown_names.length > 0 &&
      t("tools.fault.unknown_names", { names: listed(faults.unknown_names) }),
    faults.absent > 0 && t("tools.fault.absent", { n: faults.absent.toLocaleString() }),
    faults.followed_by.length > 0 && t("tools.fault.followed_by", { names: listed(faults.followed_by) }),
  ].filter((line) => line !== false);
  return (
    <li className="state-row fault-row">
      <code className="state-name">{faults.tool}</code>
      <span className="badge badge-wait">{faults.total.toLocaleString()}</span>
      <ul className="fault-lines">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </li>
  );
}

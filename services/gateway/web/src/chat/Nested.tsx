/** The calls that a script made, and how much of them it let through (GTW-229). */

import type { Json } from "../api/contract";
import { Icon } from "../design/Icon";
import { duration } from "../format/time";
import { useText } from "../i18n";
import { asRecord, shortArguments } from "./call-words";

export function Nested({ calls }: { calls: readonly Json[] }) {
  const t = useText();
  if (calls.length === 0) return null;
  return (
    <ul className="nested" aria-label={t("call.nested")}>
      {calls.map((entry, index) => {
        const call = asRecord(entry ?? null);
        const ok = call.ok !== false;
        return (
          <li key={index} className={ok ? "nested-ok" : "nested-failed"}>
            <Icon name={ok ? "check" : "failed"} />
            <span className="call-name">{String(call.name ?? "")}</span>
            <span className="call-short">{shortArguments(call.arguments ?? null)}</span>
            {typeof call.ms === "number" && <span className="call-figure">{duration(call.ms)}</span>}
            {!ok && <p className="nested-reason">{String(call.output ?? "")}</p>}
          </li>
        );
      })}
    </ul>
  );
}

/** What the calls gave the script against what it printed; a dash where nobody counted. */
export function Measures({ received, printed }: { received: number | null; printed: number | null }) {
  const t = useText();
  const figure = (count: number | null) => (count === null ? "—" : count.toLocaleString());
  return (
    <p className="muted small">
      {t("call.measures", { received: figure(received), printed: figure(printed) })}
    </p>
  );
}

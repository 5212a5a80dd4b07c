import { compact } from "../../format/count";
import { usePlural, useText } from "../../i18n";
import { Cost } from "./Cost";
import { dearestFirst, type Spent } from "./sums";

export interface Line {
  key: string;
  name: string;
  /** Said smaller under the name. */
  under?: string;
  spent: Spent;
  /** Share of the prompt that came from a cache, 0 to 1. */
  cached?: number | null;
}

/** Costs side by side, with a bar for each against the dearest. */
export function Breakdown({ lines, inOrder = false }: { lines: readonly Line[]; inOrder?: boolean }) {
  const t = useText();
  const plural = usePlural();
  const most = Math.max(...lines.map(({ spent }) => spent.cost_usd ?? 0));
  const shown = inOrder ? lines : [...lines].sort((one, other) => dearestFirst(one.spent, other.spent));
  return (
    <ul className="breakdown">
      {shown.map(({ key, name, under, spent, cached }) => (
        <li key={key} className={spent.calls === 0 ? "breakdown-row breakdown-none" : "breakdown-row"}>
          <span className="breakdown-name">
            <span>{name}</span>
            {under && <span className="muted">{under}</span>}
          </span>
          <progress
            className="breakdown-bar"
            max={1}
            value={most > 0 ? (spent.cost_usd ?? 0) / most : 0}
            aria-hidden="true"
          />
          <span className="breakdown-cost">
            <Cost spent={spent} />
          </span>
          <span className="breakdown-facts">
            <span>{plural("costs.calls.one", "costs.calls.other", spent.calls)}</span>
            {spent.calls > 0 && (
              <span>
                {t("costs.tokens", {
                  sent: compact(spent.prompt_tokens),
                  got: compact(spent.completion_tokens),
                })}
              </span>
            )}
            {cached !== undefined && cached !== null && (
              <span>{t("costs.cached", { share: Math.round(cached * 100) })}</span>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

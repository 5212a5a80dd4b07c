import { useState } from "react";
import type { Budget } from "../../api/contract";
import { budgets as budgetsApi } from "../../api/crew";
import { ApiError } from "../../api/http";
import { Button } from "../../design/Button";
import { useSentence } from "../../design/Problem";
import { limit, money } from "../../format/money";
import { useText, type Key } from "../../i18n";
import { agentName } from "../../state/crew";
import { LoadProblem, Panel } from "../Section";
import { useLoad } from "../useLoad";

const STATES: Record<string, { words: Key; tone: string }> = {
  free: { words: "budget.free", tone: "calm" },
  near: { words: "budget.near", tone: "wait" },
  spent: { words: "budget.spent", tone: "bad" },
};

/** The budgets of config.yaml, and going on past one for today. Nothing where none is set. */
export function Budgets() {
  const t = useText();
  const sentence = useSentence();
  const loaded = useLoad(budgetsApi.list);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const budgets = loaded.data?.budgets ?? [];
  const spent = budgets.filter(({ state }) => state === "spent");

  const decide = async (goOn: boolean) => {
    setBusy(true);
    setError(null);
    try {
      await budgetsApi.goOn(goOn);
      loaded.again();
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setError(sentence(cause));
    } finally {
      setBusy(false);
    }
  };
  if (loaded.error) return <LoadProblem loaded={loaded} />;
  if (budgets.length === 0) return null;
  return (
    <Panel title={t("budget.title")} hint={t("budget.hint")}>
      <ul className="breakdown">
        {budgets.map((budget) => (
          <BudgetRow key={`${budget.scope} ${budget.id} ${budget.period}`} budget={budget} />
        ))}
      </ul>
      {spent.length > 0 && (
        <div className="panel-line" role="status">
          <p>{t(spent.some(({ go_on_today }) => go_on_today) ? "budget.goes_on" : "budget.stands")}</p>
          <span className="row-actions">
            <Button disabled={busy} onClick={() => void decide(true)}>
              {t("budget.go_on")}
            </Button>
            <Button look="quiet" disabled={busy} onClick={() => void decide(false)}>
              {t("budget.stop")}
            </Button>
          </span>
        </div>
      )}
      {error && (
        <p className="form-error" role="alert">
          {error}
        </p>
      )}
    </Panel>
  );
}

function BudgetRow({ budget }: { budget: Budget }) {
  const t = useText();
  const state = STATES[budget.state];
  const who =
    budget.scope === "agent"
      ? agentName(budget.id)
      : budget.scope === "schedule"
        ? t("run.source.job", { job: budget.id })
        : t("budget.crew");
  const period = t(budget.period === "month" ? "budget.month" : "budget.day");
  return (
    <li className={`breakdown-row budget-${budget.state}`}>
      <span className="breakdown-name">
        <span>{who}</span>
        <span className="muted">{period}</span>
      </span>
      <meter
        className="breakdown-bar"
        min={0}
        max={budget.limit_usd || 1}
        value={Math.min(budget.spent_usd, budget.limit_usd || 1)}
        aria-label={`${who}, ${period}`}
      />
      <span className="breakdown-cost">
        {money(budget.spent_usd)}
        {budget.unknown_cost_calls > 0 && <span className="cost-unknown"> + {t("costs.unknown")}</span>}
        <span className="muted"> / {limit(budget.limit_usd)}</span>
      </span>
      <span className="breakdown-facts">
        {state && <span className={`badge badge-${state.tone}`}>{t(state.words)}</span>}
        {budget.reserved_usd > 0 && (
          <span>{t("budget.reserved", { amount: money(budget.reserved_usd) })}</span>
        )}
      </span>
    </li>
  );
}

import { money } from "../../format/money";
import { useText } from "../../i18n";
import type { Spent } from "./sums";

/** A sum as it is known: "unknown" where no price is, a flag where some are missing or worked out. */
export function Cost({ spent }: { spent: Spent }) {
  const t = useText();
  const { cost_usd, calls, unknown_cost_calls: unknown, estimated_cost_calls: estimated } = spent;
  if (cost_usd === null)
    return calls > 0 ? <span className="cost-unknown">{t("costs.unknown")}</span> : money(0);
  return (
    <>
      {estimated > 0 && (
        <span title={t("costs.estimated", { n: estimated })}>
          <span aria-hidden="true">≈ </span>
          <span className="visually-hidden">{t("costs.about")} </span>
        </span>
      )}
      {money(cost_usd)}
      {unknown > 0 && <span className="cost-unknown"> + {t("costs.unknown")}</span>}
    </>
  );
}

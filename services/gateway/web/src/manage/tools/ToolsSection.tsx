/** What the crew can do: who holds which tool, and how the tools do (GTW-245). */

import { useText } from "../../i18n";
import { SectionHead } from "../Section";
import { Tabs } from "../Tabs";
import { Figures } from "./Figures";
import { Matrix } from "./Matrix";

const FIGURES = "figures";

export function ToolsSection({ item }: { item: string | null }) {
  const t = useText();
  const at = item === FIGURES ? FIGURES : null;
  return (
    <div className="section">
      <SectionHead title={t("manage.tools")} hint={t(at ? "tools.figures_hint" : "tools.hint")}>
        <Tabs
          section="tools"
          at={at}
          label={t("manage.tools")}
          tabs={[
            { item: null, words: t("tools.holders") },
            { item: FIGURES, words: t("tools.figures") },
          ]}
        />
      </SectionHead>
      {at ? <Figures /> : <Matrix />}
    </div>
  );
}

import type { Agent } from "../../api/contract";
import { useText } from "../../i18n";

/** What an agent is, in a few words; being at work is told as a word, not as a colour alone. */
export function AgentBadges({ agent, live }: { agent: Agent; live: boolean }) {
  const t = useText();
  return (
    <span className="agent-badges">
      {live && <span className="badge badge-good">{t("crew.live")}</span>}
      {agent.master && <span className="badge badge-calm">{t("crew.master")}</span>}
      {agent.mode && <span className="badge badge-calm">{agent.mode}</span>}
      {agent.autonomous && <span className="badge badge-wait">{t("options.autonomous_short")}</span>}
    </span>
  );
}

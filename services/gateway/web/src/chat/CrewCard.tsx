import { hub } from "../activity/hub";
import { Card } from "../design/Card";
import { Icon } from "../design/Icon";
import { usePlural, useText } from "../i18n";
import { agents, masterFirst } from "../state/crew";
import { hrefOf } from "../state/route";
import { useStore } from "../state/store";

/** Who is in the crew and at work now, from within a conversation (GTW-216). */
export function CrewCard() {
  const t = useText();
  const plural = usePlural();
  const members = masterFirst(useStore(agents));
  const working = new Set(
    [...useStore(hub.runs).values()].filter(({ status }) => status === "running").map((run) => run.agent_id),
  );
  return (
    <Card
      label={
        working.size > 0
          ? `${t("manage.crew")}, ${plural("crew.working.one", "crew.working.other", working.size)}`
          : t("manage.crew")
      }
      pill={
        <>
          <Icon name="people" />
          {working.size > 0 && <span>{working.size}</span>}
        </>
      }
    >
      <div className="crew-card">
        <h2>{t("manage.crew")}</h2>
        <ul>
          {members.map((agent) => (
            <li key={agent.id}>
              <a href={hrefOf({ page: "manage", section: "crew", item: agent.id })}>
                {agent.name || agent.id}
              </a>
              {agent.master && <span className="badge badge-calm">{t("crew.master")}</span>}
              {working.has(agent.id) && <span className="badge badge-good">{t("crew.live")}</span>}
            </li>
          ))}
        </ul>
      </div>
    </Card>
  );
}

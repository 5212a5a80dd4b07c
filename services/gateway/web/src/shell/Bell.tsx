/** What the crew has told the owner, behind a bell with the number of new things. */

import { useEffect, useState } from "react";
import type { Notification } from "../api/contract";
import { Dialog } from "../design/Dialog";
import { Icon, type IconName } from "../design/Icon";
import { Time } from "../design/Time";
import { usePlural, useText } from "../i18n";
import { agentName } from "../state/crew";
import { markRead, notifications, unread } from "../state/notifications";
import { hrefOf } from "../state/route";
import { useStore } from "../state/store";

export function Bell() {
  const t = useText();
  const plural = usePlural();
  const count = useStore(unread);
  const [open, setOpen] = useState(false);
  const name =
    count > 0
      ? `${t("notices.title")}, ${plural("notices.new.one", "notices.new.other", count)}`
      : t("notices.title");
  return (
    <>
      <button
        type="button"
        className="icon-button bell"
        aria-label={name}
        title={name}
        onClick={() => setOpen(true)}
      >
        <Icon name="bell" />
        {count > 0 && <span className="count count-attention">{count > 99 ? "99+" : count}</span>}
      </button>
      {open && <Told onClose={() => setOpen(false)} />}
    </>
  );
}

function Told({ onClose }: { onClose: () => void }) {
  const t = useText();
  const all = useStore(notifications);
  // What was new when it was opened stays marked until it is closed.
  const [fresh] = useState(
    () => new Set((notifications.get() ?? []).filter(({ read_at }) => read_at === null).map(({ id }) => id)),
  );
  useEffect(() => {
    if (unread.get() > 0) void markRead([]);
  }, []);
  return (
    <Dialog title={t("notices.title")} className="sheet" onClose={onClose}>
      {all === null ? (
        <p className="panel-empty">{t("common.loading")}</p>
      ) : all.length === 0 ? (
        <p className="panel-empty">{t("notices.empty")}</p>
      ) : (
        <ul className="notices sheet-scroll">
          {all.map((told) => (
            <Notice key={told.id} told={told} fresh={fresh.has(told.id)} onLeave={onClose} />
          ))}
        </ul>
      )}
    </Dialog>
  );
}

const ICONS: Record<string, IconName> = { trouble: "alert", recovered: "check", approval: "hand" };

function Notice({ told, fresh, onLeave }: { told: Notification; fresh: boolean; onLeave: () => void }) {
  const t = useText();
  return (
    <li className={`notice notice-${told.kind} ${told.over_at ? "notice-over" : ""}`}>
      <Icon name={ICONS[told.kind] ?? "note"} />
      <div className="notice-body">
        <p>
          {fresh && <span className="badge badge-wait">{t("notices.fresh")}</span>} {told.text}
        </p>
        <p className="notice-meta">
          <Time iso={told.created_at} />
          {told.agent_id && <span>{agentName(told.agent_id)}</span>}
          {told.over_at && <span>{t("notices.over")}</span>}
          {told.delivery === "not_delivered" && !told.over_at && <span>{t("notices.unseen")}</span>}
          {told.conversation_id && (
            <a href={hrefOf({ page: "conversation", id: told.conversation_id })} onClick={onLeave}>
              {t("run.open_conversation")}
            </a>
          )}
        </p>
      </div>
    </li>
  );
}

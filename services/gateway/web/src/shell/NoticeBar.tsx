import { Icon } from "../design/Icon";
import { useText } from "../i18n";
import { markRead, notifications } from "../state/notifications";
import { useStore } from "../state/store";

const SHOWN = ["trouble", "budget"];

/** A thin bar with the newest thing that is wrong or a budget near its end, until the person has seen it. */
export function NoticeBar() {
  const t = useText();
  const told = useStore(notifications)?.find(
    ({ kind, read_at, over_at }) => SHOWN.includes(kind) && read_at === null && over_at === null,
  );
  if (!told) return null;
  return (
    <div className="bar bar-degraded">
      <Icon name="bell" size={14} />
      <span>{told.text}</span>
      <button type="button" className="text-button" onClick={() => void markRead([told.id])}>
        {t("activity.seen")}
      </button>
    </div>
  );
}

import { Icon } from "../design/Icon";
import { useText } from "../i18n";
import { markRead, notice, notifications } from "../state/notifications";
import { useStore } from "../state/store";

/** A thin bar with the newest thing that is wrong, until the person has seen it. */
export function NoticeBar() {
  const t = useText();
  const said = useStore(notice);
  const trouble = useStore(notifications)?.find(
    ({ kind, read_at, over_at }) => kind === "trouble" && read_at === null && over_at === null,
  );
  const words = said ?? trouble?.text;
  if (!words) return null;
  const dismiss = () => {
    if (said !== null) notice.set(null);
    else if (trouble) void markRead([trouble.id]);
  };
  return (
    <div className="bar bar-degraded">
      <Icon name="bell" size={14} />
      <span>{words}</span>
      <button type="button" className="text-button" onClick={dismiss}>
        {t("activity.seen")}
      </button>
    </div>
  );
}

import type { QueuedMessage } from "../api/contract";
import { Icon } from "../design/Icon";
import { useText } from "../i18n";

/** Messages that wait; they have no cancel, Stop hands them back (GTW-221). */
export function QueueChips({ queued }: { queued: readonly QueuedMessage[] }) {
  const t = useText();
  return (
    <ul className="chips" aria-label={t("queue.label")} aria-live="polite">
      {queued.map((item) => (
        <li key={item.item_id} className="chip">
          <Icon name={item.kind === "steer" ? "edit" : "clock"} size={14} />
          <span className="chip-kind">{t(item.kind === "steer" ? "queue.steer" : "queue.follow_up")}</span>
          <span className="chip-text">{item.text}</span>
        </li>
      ))}
    </ul>
  );
}

import { Icon } from "../design/Icon";
import { countdown } from "../format/time";
import { useText } from "../i18n";
import { useNow } from "../state/clock";

const HURRY_MS = 60_000;

/** Whether the request's time is up, as this page's clock sees it. */
export function useExpired(expiresAt: string): boolean {
  return useNow() >= Date.parse(expiresAt);
}

export function TimeLeft({ expiresAt }: { expiresAt: string }) {
  const t = useText();
  const now = useNow();
  const left = Date.parse(expiresAt) - now;
  if (left <= 0) {
    return (
      <span className="time-left time-over">
        <Icon name="clock" />
        {t("approval.expired")}
      </span>
    );
  }
  return (
    <span className={left < HURRY_MS ? "time-left time-hurry" : "time-left"}>
      <Icon name="clock" />
      {t("approval.time_left", { time: countdown(expiresAt, now) })}
    </span>
  );
}

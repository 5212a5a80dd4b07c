/** Thin bars over the page: what is down and since when, and a newer version of the page. */

import { useEffect, useSyncExternalStore } from "react";
import { hub } from "../activity/hub";
import { Icon } from "../design/Icon";
import { clock } from "../format/time";
import { useLanguage, useText } from "../i18n";
import { announce } from "../state/announcer";
import { health, outage, refreshHealth } from "../state/crew";
import { useStore } from "../state/store";
import { useNewVersion } from "./version";

function useOnline(): boolean {
  return useSyncExternalStore(
    (changed) => {
      addEventListener("online", changed);
      addEventListener("offline", changed);
      return () => {
        removeEventListener("online", changed);
        removeEventListener("offline", changed);
      };
    },
    () => navigator.onLine,
  );
}

export function Bars() {
  const t = useText();
  const language = useLanguage();
  const online = useOnline();
  const down = useStore(outage);
  const state = useStore(health);
  const lostAt = useStore(hub.lostAt);
  const newVersion = useNewVersion();
  const missing = state?.services.filter((service) => !service.reachable) ?? [];

  const words = sentence();
  useEffect(() => {
    if (words) announce(words);
  }, [words]);

  function sentence(): string | null {
    if (!online) return t("bar.offline");
    if (down) {
      const since = clock(new Date(down.since).toISOString(), language);
      return down.detail ? t("bar.down_detail", { detail: down.detail, since }) : t("bar.down", { since });
    }
    if (missing.length > 0) {
      const names = missing.map((service) => service.name).join(", ");
      const [first] = missing;
      const since = first?.since ? clock(first.since, language) : "";
      return since ? t("bar.service_since", { names, since }) : t("bar.service", { names });
    }
    if (lostAt !== null) {
      return t("bar.stream_lost", { since: clock(new Date(lostAt).toISOString(), language) });
    }
    return null;
  }

  return (
    <>
      {words && (
        <div className={down || !online ? "bar bar-down" : "bar bar-degraded"} role="status">
          <Icon name="alert" size={14} />
          <span>
            {words}
            {missing[0]?.note && !down && online && <span className="bar-note"> {missing[0].note}</span>}
          </span>
          <button
            type="button"
            className="text-button"
            onClick={() => {
              hub.retry();
              void refreshHealth();
            }}
          >
            {t("common.try_again")}
          </button>
        </div>
      )}
      {newVersion && (
        <div className="bar bar-version" role="status">
          <Icon name="spark" size={14} />
          <span>{t("bar.new_version")}</span>
          <button type="button" className="text-button" onClick={() => location.reload()}>
            {t("bar.reload")}
          </button>
        </div>
      )}
    </>
  );
}

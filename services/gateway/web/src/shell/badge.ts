import { useEffect } from "react";
import { useText } from "../i18n";
import { waitingApprovals } from "../state/crew";
import { useStore } from "../state/store";

/** The tab's title and the installed app's badge count what waits for the person (GTW-264). */
export function useBadge(): void {
  const t = useText();
  const waiting = useStore(waitingApprovals).length;
  const name = t("product.name");
  useEffect(() => {
    document.title = waiting > 0 ? `(${waiting}) ${name}` : name;
    if (!("setAppBadge" in navigator)) return;
    const told = waiting > 0 ? navigator.setAppBadge(waiting) : navigator.clearAppBadge();
    // Only an installed app has a badge: elsewhere the refusal means nothing.
    told.catch(() => undefined);
  }, [waiting, name]);
}

import { Suspense, useEffect, useRef } from "react";
import { hub } from "../activity/hub";
import { Icon, type IconName } from "../design/Icon";
import { useText, type Key } from "../i18n";
import { Bell } from "../shell/Bell";
import { Boundary } from "../shell/Boundary";
import { waitingApprovals } from "../state/crew";
import { hrefOf, type Section } from "../state/route";
import { useStore } from "../state/store";
import { Sections } from "./lazy";
import { needsYou, useSeenFailures } from "./seen-failures";

const GROUPS: { words: Key; sections: { section: Section; icon: IconName; words: Key }[] }[] = [
  {
    words: "manage.group.watch",
    sections: [
      { section: "activity", icon: "pulse", words: "manage.activity" },
      { section: "approvals", icon: "hand", words: "manage.approvals" },
      { section: "costs", icon: "coin", words: "manage.costs" },
      { section: "audit", icon: "list", words: "manage.audit" },
    ],
  },
  {
    words: "manage.group.crew",
    sections: [
      { section: "crew", icon: "people", words: "manage.crew" },
      { section: "tools", icon: "tool", words: "manage.tools" },
    ],
  },
  {
    words: "manage.group.system",
    sections: [
      { section: "connections", icon: "plug", words: "manage.connections" },
      { section: "settings", icon: "sliders", words: "manage.settings" },
    ],
  },
];

/** Everything but the chat, each part under an address of its own. */
export function ManagePage({ section, item }: { section: Section; item: string | null }) {
  const t = useText();
  const waiting = useStore(waitingApprovals).length;
  const runs = [...useStore(hub.runs).values()];
  const seen = useSeenFailures();
  const activity = runs.filter((run) => run.status === "running").length + needsYou(runs, seen).length;
  const counts: Partial<Record<Section, number>> = { activity, approvals: waiting };
  const current = useRef<HTMLAnchorElement>(null);

  useEffect(() => {
    current.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [section]);

  return (
    <div className="manage">
      <nav className="manage-nav" aria-label={t("manage.label")}>
        <Bell />
        <a
          className="rail-link manage-back"
          href={hrefOf({ page: "start" })}
          aria-label={t("manage.back")}
          title={t("manage.back")}
        >
          <Icon name="back" />
          <span>{t("manage.back")}</span>
        </a>
        {GROUPS.map((group) => (
          <div className="manage-group" key={group.words}>
            <h2 className="rail-day">{t(group.words)}</h2>
            {group.sections.map(({ section: name, icon, words }) => (
              <a
                key={name}
                ref={name === section ? current : undefined}
                className={name === section ? "rail-link current" : "rail-link"}
                href={hrefOf({ page: "manage", section: name, item: null })}
                aria-current={name === section ? "page" : undefined}
              >
                <Icon name={icon} />
                <span>{t(words)}</span>
                {(counts[name] ?? 0) > 0 && (
                  <span className={name === "approvals" ? "count count-attention" : "count"}>
                    {counts[name]}
                  </span>
                )}
              </a>
            ))}
          </div>
        ))}
      </nav>
      {/* It scrolls, and a section may hold nothing to stop at: the keyboard needs the place itself. */}
      <main className="manage-main" tabIndex={0}>
        <Boundary key={`${section}/${item ?? ""}`}>
          <Suspense fallback={<p className="section panel-empty">{t("common.loading")}</p>}>
            <Sections section={section} item={item} />
          </Suspense>
        </Boundary>
      </main>
    </div>
  );
}

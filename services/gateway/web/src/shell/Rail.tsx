/** The list at the left: conversations, and the way to everything else. A modal drawer on a phone. */

import { useEffect, useRef } from "react";
import { hub } from "../activity/hub";
import { IconButton } from "../design/Button";
import { Icon, Mark, type IconName } from "../design/Icon";
import { useText, type Key } from "../i18n";
import { useNarrowRail } from "../state/media";
import { waitingApprovals } from "../state/crew";
import { hrefOf, type Section } from "../state/route";
import { useStore } from "../state/store";
import { Bell } from "./Bell";
import { ConversationList } from "./ConversationList";
import { SEARCH_FIELD_ID, searchAsked } from "./search";

/** Between phone and desktop only its icons have room, and the list opens as a drawer. */
export function Rail({ onOpen, onHelp }: { onOpen: () => void; onHelp: () => void }) {
  const t = useText();
  return (
    <nav className="rail" aria-label={t("rail.label")}>
      <RailBody onHelp={onHelp} onOpen={onOpen} />
    </nav>
  );
}

export function RailDrawer({ onClose, onHelp }: { onClose: () => void; onHelp: () => void }) {
  const t = useText();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    if (searchAsked.get()) document.getElementById(SEARCH_FIELD_ID)?.focus();
    return () => {
      searchAsked.set(false);
      element?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      className="drawer"
      aria-label={t("rail.label")}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <nav className="rail" aria-label={t("rail.label")}>
        <RailBody onHelp={onHelp} onClose={onClose} />
      </nav>
    </dialog>
  );
}

interface RailBodyProps {
  onHelp: () => void;
  onOpen?: () => void;
  onClose?: () => void;
}

function RailBody({ onHelp, onOpen, onClose }: RailBodyProps) {
  const t = useText();
  const narrow = useNarrowRail();
  const waiting = useStore(waitingApprovals).length;
  const running = [...useStore(hub.runs).values()].filter((run) => run.status === "running").length;
  return (
    <>
      <header className="rail-head">
        <a className="brand" href={hrefOf({ page: "start" })} aria-label={t("product.name")}>
          <Mark />
          <span className="rail-wide">{t("product.name")}</span>
        </a>
        <Bell />
        {onOpen && narrow && <IconButton icon="menu" label={t("rail.open")} onClick={onOpen} />}
        {onClose && <IconButton icon="close" label={t("common.close")} onClick={onClose} />}
      </header>
      <a
        className="new-button"
        href={hrefOf({ page: "start" })}
        aria-label={t("rail.new")}
        title={t("rail.new")}
      >
        <Icon name="plus" />
        <span className="rail-wide">{t("rail.new")}</span>
      </a>
      {(onClose || !narrow) && <ConversationList />}
      <div className="rail-foot">
        <ManageLink section="approvals" icon="hand" words="manage.approvals" count={waiting} attention />
        <ManageLink section="activity" icon="pulse" words="manage.activity" count={running} />
        <ManageLink section="connections" icon="plug" words="manage.connections" count={0} />
        <ManageLink section="settings" icon="sliders" words="manage.settings" count={0} />
        <button type="button" className="rail-link rail-help" onClick={onHelp} title={t("keys.title")}>
          <Icon name="question" />
          <span className="rail-wide">{t("keys.title")}</span>
        </button>
      </div>
    </>
  );
}

interface ManageLinkProps {
  section: Section;
  icon: IconName;
  words: Key;
  count: number;
  attention?: boolean;
}

function ManageLink({ section, icon, words, count, attention = false }: ManageLinkProps) {
  const t = useText();
  const name = t(words);
  return (
    <a className="rail-link" href={hrefOf({ page: "manage", section, item: null })} title={name}>
      <Icon name={icon} />
      <span className="rail-wide">{name}</span>
      {count > 0 && <span className={attention ? "count count-attention" : "count"}>{count}</span>}
    </a>
  );
}

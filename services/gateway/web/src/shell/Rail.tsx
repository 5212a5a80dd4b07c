/** The list at the left: conversations, and the way to everything else. A modal drawer on a phone. */

import { useEffect, useMemo, useRef, useState } from "react";
import { hub, isLive } from "../activity/hub";
import type { Conversation } from "../api/contract";
import { IconButton } from "../design/Button";
import { Icon, Mark, type IconName } from "../design/Icon";
import { Time } from "../design/Time";
import { dayOf, type Day } from "../format/time";
import { useText, type Key } from "../i18n";
import { useNow } from "../state/clock";
import { useNarrowRail } from "../state/media";
import { agents, conversationList, seenMarks, waitingApprovals } from "../state/crew";
import { hrefOf, route, type Section } from "../state/route";
import { useStore } from "../state/store";
import { SEARCH_FIELD_ID } from "./shortcuts";

const SEARCH_FROM = 8;
const DAYS: [Day, Key][] = [
  ["today", "day.today"],
  ["yesterday", "day.yesterday"],
  ["older", "day.older"],
];

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
    return () => {
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

/** The one chat's conversations: the master's, delegated ones left out (GTW-214). */
export function listed(all: readonly Conversation[], master: string | undefined): Conversation[] {
  return all.filter(
    (conversation) =>
      !conversation.channel.startsWith("delegate") &&
      (master === undefined || conversation.agent_id === master),
  );
}

function ConversationList() {
  const t = useText();
  const all = useStore(conversationList);
  const master = useStore(agents).find((agent) => agent.master)?.id;
  const now = useNow(60);
  const [query, setQuery] = useState("");
  const conversations = useMemo(() => listed(all ?? [], master), [all, master]);
  const wanted = query.trim().toLocaleLowerCase();
  const found = wanted
    ? conversations.filter(({ title }) => title.toLocaleLowerCase().includes(wanted))
    : conversations;

  return (
    <div className="rail-list rail-wide">
      {conversations.length >= SEARCH_FROM && (
        <label className="rail-search">
          <Icon name="search" />
          <input
            id={SEARCH_FIELD_ID}
            className="search-field"
            type="search"
            value={query}
            placeholder={t("rail.search")}
            aria-label={t("rail.search")}
            onChange={(event) => setQuery(event.target.value)}
          />
        </label>
      )}
      <div className="rail-scroll">
        {all !== null && conversations.length === 0 && <p className="rail-empty">{t("rail.empty")}</p>}
        {wanted && found.length === 0 && <p className="rail-empty">{t("rail.nothing_found")}</p>}
        {DAYS.map(([day, words]) => {
          const group = found.filter(({ updated_at }) => dayOf(updated_at, now) === day);
          if (group.length === 0) return null;
          return (
            <section key={day} aria-label={t(words)}>
              <h2 className="rail-day">{t(words)}</h2>
              <ul>
                {group.map((conversation) => (
                  <ConversationLink key={conversation.id} conversation={conversation} />
                ))}
              </ul>
            </section>
          );
        })}
      </div>
    </div>
  );
}

type Dot = "waiting" | "running" | "unread" | null;

function ConversationLink({ conversation }: { conversation: Conversation }) {
  const t = useText();
  const place = useStore(route);
  const seen = useStore(seenMarks)[conversation.id] ?? "";
  const waits = useStore(waitingApprovals).some((approval) => approval.conversation_id === conversation.id);
  const runs = useStore(hub.runs);
  const current = place.page === "conversation" && place.id === conversation.id;
  const running =
    conversation.running ||
    [...runs.values()].some(
      (run) => run.conversation_id === conversation.id && isLive(run) && run.status === "running",
    );
  const dot: Dot = waits
    ? "waiting"
    : running
      ? "running"
      : !current && seen !== "" && conversation.updated_at > seen
        ? "unread"
        : null;
  const title = conversation.title || t("conversation.untitled");
  const dotWords = {
    waiting: t("rail.dot.waiting"),
    running: t("rail.dot.running"),
    unread: t("rail.dot.unread"),
  };
  return (
    <li>
      <a
        className={current ? "rail-link conversation-link current" : "rail-link conversation-link"}
        href={hrefOf({ page: "conversation", id: conversation.id })}
        aria-current={current ? "page" : undefined}
        title={title}
      >
        <span className="conversation-title">{title}</span>
        {dot ? (
          <span className={`dot dot-${dot}`}>
            <span className="visually-hidden">{dotWords[dot]}</span>
          </span>
        ) : (
          <Time iso={conversation.updated_at} />
        )}
      </a>
    </li>
  );
}

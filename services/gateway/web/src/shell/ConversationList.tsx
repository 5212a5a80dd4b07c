/** The conversations under their day, and the search over titles and what was said (GTW-214, GTW-215). */

import { useMemo, useRef, useState, type KeyboardEvent } from "react";
import { hub, isLive } from "../activity/hub";
import type { Conversation, MessageHit } from "../api/contract";
import { Icon } from "../design/Icon";
import { Time } from "../design/Time";
import { foldedIncludes, foundParts } from "../format/folded";
import { plainLine } from "../format/plain";
import { dayOf, type Day } from "../format/time";
import { useText, type Key } from "../i18n";
import { useNow } from "../state/clock";
import { agents, conversationList, seenMarks, waitingApprovals } from "../state/crew";
import { hrefOf, route } from "../state/route";
import { useStore } from "../state/store";
import { SEARCH_FIELD_ID, searchAsked, useContentSearch, type ContentSearch } from "./search";

const SEARCH_FROM = 8;
const DAYS: [Day, Key][] = [
  ["today", "day.today"],
  ["yesterday", "day.yesterday"],
  ["older", "day.older"],
];

/** The one chat's conversations: the master's, delegated ones left out (GTW-214). */
export function listed(all: readonly Conversation[], master: string | undefined): Conversation[] {
  return all.filter(
    (conversation) =>
      !conversation.channel.startsWith("delegate") &&
      (master === undefined || conversation.agent_id === master),
  );
}

export function ConversationList() {
  const t = useText();
  const all = useStore(conversationList);
  const master = useStore(agents).find((agent) => agent.master)?.id;
  const asked = useStore(searchAsked);
  const now = useNow(60);
  const root = useRef<HTMLDivElement>(null);
  const [query, setQuery] = useState("");
  const content = useContentSearch(query, master);
  const conversations = useMemo(() => listed(all ?? [], master), [all, master]);
  const wanted = query.trim();
  const found = wanted ? conversations.filter(({ title }) => foldedIncludes(title, wanted)) : conversations;

  const pressed = (event: KeyboardEvent<HTMLElement>) => {
    if (event.nativeEvent.isComposing) return;
    const links = [...(root.current?.querySelectorAll<HTMLElement>("a") ?? [])];
    const field = document.getElementById(SEARCH_FIELD_ID);
    const inField = event.target === field;
    const at = links.findIndex((link) => link === event.target);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const to = at + (event.key === "ArrowDown" ? 1 : -1);
      if (!inField && at < 0) return;
      event.preventDefault();
      (to < 0 ? field : links[Math.min(to, links.length - 1)])?.focus();
    } else if (event.key === "Enter" && inField && wanted) {
      event.preventDefault();
      links[0]?.click();
    } else if (event.key === "Escape" && inField && query) {
      event.preventDefault();
      setQuery("");
    }
  };

  return (
    <div className="rail-list rail-wide" ref={root} onKeyDown={pressed}>
      {(asked || conversations.length >= SEARCH_FROM) && (
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
            onBlur={() => {
              if (!query) searchAsked.set(false);
            }}
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
                  <ConversationLink key={conversation.id} conversation={conversation} query={wanted} />
                ))}
              </ul>
            </section>
          );
        })}
        {wanted && content && <ContentHits content={content} />}
      </div>
    </div>
  );
}

type Dot = "waiting" | "running" | "unread" | null;

function ConversationLink({ conversation, query }: { conversation: Conversation; query: string }) {
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
        <span className="conversation-title">{query ? <Found text={title} query={query} /> : title}</span>
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

function ContentHits({ content }: { content: ContentSearch }) {
  const t = useText();
  return (
    <section aria-label={t("rail.in_content")}>
      <h2 className="rail-day">{t("rail.in_content")}</h2>
      {content.hits.length === 0 ? (
        <p className="rail-empty" role="status">
          {t(content.failed ? "rail.content_failed" : "rail.content_nothing")}
        </p>
      ) : (
        <ul>
          {content.hits.map((hit) => (
            <li key={hit.message_id}>
              <HitLink hit={hit} query={content.query} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Leads to the message itself, not only to its conversation. */
function HitLink({ hit, query }: { hit: MessageHit; query: string }) {
  const t = useText();
  return (
    <a
      className="rail-link content-hit"
      href={hrefOf({ page: "conversation", id: hit.conversation_id, message: hit.message_id })}
    >
      <span className="content-hit-head">
        <span className="conversation-title">{hit.title || t("conversation.untitled")}</span>
        <Time iso={hit.created_at} />
      </span>
      <span className="content-hit-words">
        <Found text={plainLine(hit.snippet)} query={query} />
      </span>
    </a>
  );
}

function Found({ text, query }: { text: string; query: string }) {
  return foundParts(text, query).map((part, index) =>
    part.found ? <mark key={index}>{part.text}</mark> : part.text,
  );
}

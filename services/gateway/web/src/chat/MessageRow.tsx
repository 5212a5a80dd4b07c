import { memo } from "react";
import { IconButton } from "../design/Button";
import type { Message } from "../api/contract";
import { CopyButton } from "../design/CopyButton";
import { ShareButton } from "../design/ShareButton";
import { Fold } from "../design/Fold";
import { Icon, Spinner, type IconName } from "../design/Icon";
import { Time } from "../design/Time";
import { dayOf } from "../format/time";
import { compact } from "../format/count";
import { money } from "../format/money";
import { useLanguage, useText } from "../i18n";
import { useNow } from "../state/clock";
import { Markdown } from "../markdown/Markdown";
import { haltWords } from "./halt-words";
import type { Row } from "./rows";
import type { Note } from "./thread-state";
import { CallList } from "./ToolCard";

interface Props {
  row: Row;
  waitingFor: string | null;
  /** Goes on from before a stored message of the person; null where that cannot be. */
  onFork: ((messageId: number) => void) | null;
}

export const MessageRow = memo(function MessageRow({ row, waitingFor, onFork }: Props) {
  switch (row.kind) {
    case "day":
      return <DayLine at={row.at} />;
    case "user":
      return <OwnMessage row={row} onFork={onFork} />;
    case "system":
      return (
        <p className="note-line">
          <Icon name="note" />
          <span>{row.text}</span>
        </p>
      );
    case "assistant":
      return (
        <article className={row.message.tool_calls.length > 0 ? "reply reply-before-calls" : "reply"}>
          <Markdown text={row.text} />
          <ReplyFoot row={row} />
        </article>
      );
    case "calls":
      return <CallList calls={row.calls} waitingFor={waitingFor} />;
    case "note":
      return <NoteLine note={row.note} />;
    case "live":
      return <LiveReply text={row.text} thinking={row.thinking} />;
  }
});

function OwnMessage({
  row: { text, messageId },
  onFork,
}: {
  row: Extract<Row, { kind: "user" }>;
  onFork: Props["onFork"];
}) {
  const t = useText();
  return (
    <div className="own">
      {onFork && messageId !== null && (
        <IconButton icon="edit" label={t("fork.edit")} onClick={() => onFork(messageId)} />
      )}
      <div className={messageId === null ? "bubble bubble-new" : "bubble"}>
        <Fold text={text}>
          <p className="bubble-text">{text}</p>
        </Fold>
      </div>
    </div>
  );
}

function DayLine({ at }: { at: string }) {
  const t = useText();
  const language = useLanguage();
  const day = dayOf(at, useNow(60));
  const label =
    day === "today"
      ? t("day.today")
      : day === "yesterday"
        ? t("day.yesterday")
        : new Intl.DateTimeFormat(language, { dateStyle: "long" }).format(Date.parse(at));
  return (
    <div className="day-line">
      <span>{label}</span>
    </div>
  );
}

function ReplyFoot({ row }: { row: Extract<Row, { kind: "assistant" }> }) {
  const t = useText();
  const { message } = row;
  const tokens =
    message.completion_tokens === null ? "" : t("run.tokens_out", { n: compact(message.completion_tokens) });
  return (
    <footer className="reply-foot">
      <CopyButton text={() => row.text} label={t("reply.copy")} />
      <ShareButton text={row.text} label={t("reply.share")} />
      <span className="reply-figures">
        {message.model && <span>{message.model}</span>}
        {tokens && <span>{tokens}</span>}
        {message.model && <span>{message.cost_usd === null ? t("run.cost_unknown") : priced(message)}</span>}
        <Time iso={message.created_at} />
      </span>
    </footer>
  );
}

/** A price worked out of lengths of texts is only about right. */
function priced({ cost_usd, cost_estimated }: Message): string {
  return `${cost_estimated ? "≈ " : ""}${money(cost_usd ?? 0)}`;
}

function LiveReply({ text, thinking }: { text: string; thinking: boolean }) {
  const t = useText();
  if (!text) {
    return (
      <p className="working">
        <Spinner />
        <span>{t(thinking ? "thread.thinking" : "thread.working")}</span>
      </p>
    );
  }
  return (
    <article className="reply reply-live">
      <Markdown text={text} />
    </article>
  );
}

const NOTE_ICONS: Record<Note["kind"], IconName> = {
  fallback: "swap",
  compacted: "note",
  halted: "hand",
  error: "alert",
};

function NoteLine({ note }: { note: Note }) {
  const t = useText();
  const words = noteWords(note, t);
  return (
    <div className={`note-line note-${note.kind}`}>
      <Icon name={NOTE_ICONS[note.kind]} />
      <span>{words}</span>
      {note.kind === "error" && <CopyButton text={() => note.detail} label={t("error.copy_details")} />}
    </div>
  );
}

function noteWords(note: Note, t: ReturnType<typeof useText>): string {
  switch (note.kind) {
    case "fallback":
      return t("note.fallback", { route: note.detail, next: note.next });
    case "compacted":
      return t("note.compacted", { n: note.detail });
    case "halted":
      return haltWords(note.detail, t);
    case "error":
      return `${note.detail} ${t("note.error_kept")}`;
  }
}

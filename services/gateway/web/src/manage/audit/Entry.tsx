import { useState, type ReactNode } from "react";
import type { AuditEntry } from "../../api/contract";
import { CopyButton } from "../../design/CopyButton";
import { Icon, type IconName } from "../../design/Icon";
import { Revealed } from "../../design/Revealed";
import { Time } from "../../design/Time";
import { bytes } from "../../format/bytes";
import { revealText } from "../../format/hidden";
import { duration, exact } from "../../format/time";
import { useLanguage, useText, type Key } from "../../i18n";
import { verdictBadge } from "../../runs/run-words";
import { agentName } from "../../state/crew";
import { hrefOf } from "../../state/route";

const RESULTS: Record<string, { icon: IconName; words: Key; look: string }> = {
  done: { icon: "check", words: "audit.result.done", look: "good" },
  failed: { icon: "failed", words: "audit.result.failed", look: "bad" },
  not_run: { icon: "close", words: "audit.result.not_run", look: "none" },
  open: { icon: "clock", words: "audit.result.open", look: "wait" },
};

const OUTCOMES: Record<string, Key> = {
  done: "audit.outcome.done",
  not_started: "audit.outcome.not_started",
  unknown: "audit.outcome.unknown",
};

/** One call of the trail: a line that opens to everything that is known of it. */
export function Entry({ entry }: { entry: AuditEntry }) {
  const t = useText();
  const [open, setOpen] = useState(false);
  const result = RESULTS[entry.result];
  const badge = verdictBadge(entry.allowed_by, t);
  const what = entry.command ?? entry.arguments_short;
  return (
    <li className="decided-row">
      <button
        type="button"
        className="decided-head trail-head"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <span className={`state state-${result?.look ?? "none"}`}>
          <Icon name={result?.icon ?? "note"} />
          <span className="visually-hidden">{result ? t(result.words) : entry.result}</span>
        </span>
        <span className="trail-what">
          <span className="call-name">{entry.tool}</span>
          <span className="call-short">{revealText(what.replace(/\s+/g, " ").slice(0, 200))}</span>
        </span>
        {badge && <span className={`badge badge-${badge.tone}`}>{badge.word}</span>}
        <Time iso={entry.at} />
        <Icon name="chevron" />
      </button>
      {open && <Facts entry={entry} />}
    </li>
  );
}

function Facts({ entry }: { entry: AuditEntry }) {
  const t = useText();
  const language = useLanguage();
  const result = RESULTS[entry.result];
  const outcome = entry.outcome ? OUTCOMES[entry.outcome] : undefined;
  return (
    <div className="decided-body">
      {entry.command !== null ? (
        <pre className="result-text command" tabIndex={0} aria-label={t("audit.command")}>
          <Revealed text={entry.command} />
        </pre>
      ) : (
        entry.arguments_short && (
          <pre className="result-text" tabIndex={0} aria-label={t("audit.arguments")}>
            <Revealed text={entry.arguments_short} />
          </pre>
        )
      )}
      <dl className="trail-facts">
        <Fact name={t("audit.fact.result")}>
          {result ? t(result.words) : entry.result}
          {entry.exit_code !== null && `, ${t("audit.exit_code", { code: entry.exit_code })}`}
          {entry.fault && ` (${entry.fault})`}
        </Fact>
        {outcome && <Fact name={t("audit.fact.outcome")}>{t(outcome)}</Fact>}
        <Fact name={t("audit.fact.allowed_by")}>
          {verdictBadge(entry.allowed_by, t)?.word ?? entry.allowed_by}
          {entry.rule && (
            <>
              {" "}
              <code>
                <Revealed text={entry.rule} />
              </code>
            </>
          )}
          {entry.decided_by && ` ${t("approvals.decided_by", { who: entry.decided_by })}`}
        </Fact>
        <Fact name={t("audit.fact.agent")}>{agentName(entry.agent_id)}</Fact>
        <Fact name={t("audit.fact.at")}>{exact(entry.at, language)}</Fact>
        {entry.ms !== null && <Fact name={t("audit.fact.took")}>{duration(entry.ms)}</Fact>}
        <Fact name={t("audit.fact.bytes")}>
          {entry.bytes_out === null
            ? t("audit.bytes_in", { sent: bytes(entry.bytes_in) })
            : t("audit.bytes", { sent: bytes(entry.bytes_in), got: bytes(entry.bytes_out) })}
        </Fact>
        <Fact name={t("audit.fact.digest")}>
          <span className="trail-id">
            <code>{entry.arguments_sha256.slice(0, 16)}…</code>
            <CopyButton text={() => entry.arguments_sha256} />
          </span>
        </Fact>
        {entry.trace_id && (
          <Fact name={t("audit.fact.trace")}>
            <span className="trail-id">
              <code>{entry.trace_id.slice(0, 16)}…</code>
              <CopyButton text={() => entry.trace_id} />
            </span>
          </Fact>
        )}
      </dl>
      <p className="trail-links">
        {entry.run_id && (
          <a href={hrefOf({ page: "manage", section: "activity", item: entry.run_id })}>
            {t("audit.open_run")}
          </a>
        )}
        {entry.conversation_id && (
          <a href={hrefOf({ page: "conversation", id: entry.conversation_id })}>
            {t("run.open_conversation")}
          </a>
        )}
      </p>
    </div>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

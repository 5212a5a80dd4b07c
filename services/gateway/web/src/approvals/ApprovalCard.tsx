/** A request that waits for a person, in the chat and on the approvals page. */

import type { Approval } from "../api/contract";
import { ApiError } from "../api/http";
import { Button } from "../design/Button";
import { Icon, Spinner } from "../design/Icon";
import { Revealed } from "../design/Revealed";
import { useSentence } from "../design/Problem";
import { useText } from "../i18n";
import { asRecord, shortArguments } from "../chat/call-words";
import { ApprovalBody } from "./ApprovalBody";
import { Asker } from "./Asker";
import { QuestionForm } from "./QuestionForm";
import { TimeLeft, useExpired } from "./TimeLeft";

export interface Choice {
  approve: boolean;
  always: boolean;
}

interface Props {
  approval: Approval;
  /** A decision is on its way: the buttons are off until the server has answered (FLD-029). */
  busy: boolean;
  problem: ApiError | "handled" | null;
  /** Links to the conversation; not needed inside of it. */
  linked?: boolean;
  onDecide: (choice: Choice) => void;
  onAnswer: (text: string) => void;
}

export function ApprovalCard({ approval, busy, problem, linked = false, onDecide, onAnswer }: Props) {
  const t = useText();
  const expired = useExpired(approval.expires_at);
  const question = approval.kind === "question";
  // Whether to go on past a spent budget is no call of a tool.
  const budget = approval.kind === "budget";
  const off = expired || problem === "handled";
  const heading = question
    ? String(asRecord(approval.arguments).question ?? approval.summary)
    : approval.summary ||
      t("approval.summary", { tool: approval.tool, what: shortArguments(approval.arguments) });

  return (
    <section
      className={question ? "approval approval-question" : "approval"}
      aria-label={question ? t("question.label") : t("approval.label")}
      aria-busy={busy}
    >
      <header className="approval-head">
        <span className="approval-icon">
          <Icon name={question ? "question" : budget ? "coin" : "hand"} size={18} />
        </span>
        <div className="approval-title">
          <h2>
            <Revealed text={heading} />
          </h2>
          <p className="approval-meta">
            <Asker approval={approval} link={linked} />
            {!question && !budget && <span className="mono">{approval.tool}</span>}
          </p>
        </div>
        <TimeLeft expiresAt={approval.expires_at} />
      </header>
      {!question && <ApprovalBody approval={approval} />}
      <Trouble problem={problem} expired={expired} />
      {approval.may_always && (
        <p className="muted small">{t("approval.always_covers", { what: approval.always_allows })}</p>
      )}
      {question ? (
        <QuestionForm approval={approval} busy={busy} off={off} onAnswer={onAnswer} />
      ) : (
        <footer className="approval-actions">
          {approval.may_always && (
            <Button
              look="quiet"
              disabled={busy || off}
              title={t("approval.always_hint", { tool: approval.always_allows })}
              onClick={() => onDecide({ approve: true, always: true })}
            >
              {t("approval.always")}
            </Button>
          )}
          <span className="spring" />
          <Button disabled={busy || off} onClick={() => onDecide({ approve: false, always: false })}>
            {t(budget ? "budget.stop" : "approval.deny")}
          </Button>
          <Button
            look="primary"
            disabled={busy || off}
            onClick={() => onDecide({ approve: true, always: false })}
          >
            {busy ? <Spinner /> : <Icon name="check" />}
            {t(budget ? "budget.go_on" : "approval.approve")}
          </Button>
        </footer>
      )}
    </section>
  );
}

function Trouble({ problem, expired }: { problem: Props["problem"]; expired: boolean }) {
  const t = useText();
  const sentence = useSentence();
  if (problem === "handled") {
    return (
      <p className="approval-trouble" role="status">
        {t("approval.handled")}
      </p>
    );
  }
  if (problem) {
    return (
      <p className="approval-trouble approval-failed" role="alert">
        {t("approval.not_taken")} {sentence(problem)}
      </p>
    );
  }
  if (expired) {
    return (
      <p className="approval-trouble" role="status">
        {t("approval.expired_long")}
      </p>
    );
  }
  return null;
}

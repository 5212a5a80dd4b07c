import { useCallback, useEffect, useState } from "react";
import type { Approval } from "../api/contract";
import { approvals as approvalsApi, turns } from "../api/crew";
import { ApiError } from "../api/http";
import { ApprovalBody } from "../approvals/ApprovalBody";
import { ApprovalCard } from "../approvals/ApprovalCard";
import { Asker } from "../approvals/Asker";
import { asRecord } from "../chat/call-words";
import { Button } from "../design/Button";
import { Icon, type IconName } from "../design/Icon";
import { Revealed } from "../design/Revealed";
import { Time } from "../design/Time";
import { useText, type Key } from "../i18n";
import { refreshApprovals, waitingApprovals } from "../state/crew";
import { useStore } from "../state/store";
import { LoadProblem, Panel, SectionHead } from "./Section";
import { useLoad } from "./useLoad";

const PAGES = [50, 200, 500];
/** How often an overdue request is asked for again until the server has closed it. */
const OVERDUE_LOOK_MS = 5000;

export function ApprovalsSection() {
  const t = useText();
  const waiting = useStore(waitingApprovals);
  const [limit, setLimit] = useState(PAGES[0] ?? 50);
  const load = useCallback(() => approvalsApi.decided(limit), [limit]);
  const loaded = useLoad(load);
  const nextPage = PAGES.find((size) => size > limit);
  const { again } = loaded;

  useEffect(() => {
    const timer = setInterval(() => {
      if (waitingApprovals.get().some(({ expires_at }) => Date.parse(expires_at) <= Date.now())) {
        void refreshApprovals().then(again);
      }
    }, OVERDUE_LOOK_MS);
    return () => clearInterval(timer);
  }, [again]);

  return (
    <div className="section">
      <SectionHead title={t("manage.approvals")} hint={t("approvals.hint")} />
      <LoadProblem loaded={loaded} />
      {waiting.length === 0 ? (
        <div className="calm">
          <Icon name="check" size={20} />
          <p>{t("approvals.none_waiting")}</p>
        </div>
      ) : (
        waiting.map((approval) => <Waiting key={approval.id} approval={approval} onClosed={again} />)
      )}
      <Panel title={t("approvals.history")}>
        {loaded.data && loaded.data.length > 0 ? (
          <ul className="decided">
            {loaded.data.map((approval) => (
              <Decided key={approval.id} approval={approval} />
            ))}
          </ul>
        ) : (
          <p className="panel-empty">
            {t(loaded.data === null ? "common.loading" : "approvals.history_empty")}
          </p>
        )}
        {nextPage !== undefined && (loaded.data?.length ?? 0) >= limit && (
          <Button look="quiet" onClick={() => setLimit(nextPage)}>
            {t("common.show_more")}
          </Button>
        )}
      </Panel>
    </div>
  );
}

function Waiting({ approval, onClosed }: { approval: Approval; onClosed: () => void }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<ApiError | "handled" | null>(null);

  const close = async (ask: (signal: AbortSignal) => Promise<Response>) => {
    if (busy) return;
    setBusy(true);
    setProblem(null);
    const abort = new AbortController();
    try {
      await ask(abort.signal);
      // The turn goes on at the server; its stream is for the tab that shows the conversation.
      abort.abort();
      await refreshApprovals();
      onClosed();
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setProblem(cause.status === 409 ? "handled" : cause);
      if (cause.status === 409) setTimeout(() => void refreshApprovals().then(onClosed), 1500);
    } finally {
      setBusy(false);
    }
  };

  return (
    <ApprovalCard
      approval={approval}
      busy={busy}
      problem={problem}
      linked
      onDecide={({ approve, always }) =>
        void close((signal) => turns.decide(approval, approve, always, signal))
      }
      onAnswer={(text) => void close((signal) => turns.answer(approval, text, signal))}
    />
  );
}

const OUTCOMES: Record<string, { icon: IconName; words: Key }> = {
  approved: { icon: "check", words: "approvals.outcome.approved" },
  denied: { icon: "close", words: "approvals.outcome.denied" },
  expired: { icon: "clock", words: "approvals.outcome.expired" },
  answered: { icon: "question", words: "approvals.outcome.answered" },
};

function Decided({ approval }: { approval: Approval }) {
  const t = useText();
  const [open, setOpen] = useState(false);
  const outcome = OUTCOMES[approval.status];
  const words =
    approval.kind === "question"
      ? String(asRecord(approval.arguments).question ?? approval.summary)
      : approval.summary;
  return (
    <li className={`decided-row decided-${approval.status}`}>
      <button type="button" className="decided-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="decided-outcome">
          <Icon name={outcome?.icon ?? "note"} />
          {outcome ? t(outcome.words) : approval.status}
        </span>
        <span className="decided-words">
          <Revealed text={words || approval.tool} />
        </span>
        <Time iso={approval.decided_at ?? approval.created_at} />
        <Icon name="chevron" />
      </button>
      {open && (
        <div className="decided-body">
          <p className="approval-meta">
            <Asker approval={approval} link />
            <span className="mono">{approval.tool}</span>
            {approval.decided_by && <span>{t("approvals.decided_by", { who: approval.decided_by })}</span>}
          </p>
          {approval.answer !== null && <p>{t("approvals.answer", { answer: approval.answer })}</p>}
          <ApprovalBody approval={approval} />
        </div>
      )}
    </li>
  );
}

import { useEffect, useMemo, useRef, useState } from "react";
import { hub } from "../activity/hub";
import { ApprovalCard } from "../approvals/ApprovalCard";
import type { ApiError } from "../api/http";
import { Button } from "../design/Button";
import { Icon } from "../design/Icon";
import { Problem } from "../design/Problem";
import { useText } from "../i18n";
import { RunColumn, RunStrip } from "../runs/ConversationRuns";
import { agentName, agents, markSeen } from "../state/crew";
import { useWide } from "../state/media";
import { go } from "../state/route";
import { useSelected, useStore } from "../state/store";
import { useAnnouncements } from "./announcements";
import { ConversationHead } from "./ConversationHead";
import { Composer, type ComposerHandle } from "./Composer";
import { useForking } from "./forking";
import { MessageList } from "./MessageList";
import { QueueChips } from "./QueueChips";
import { CapForm } from "./SpendCard";
import type { Thread } from "./thread";
import { threadOf } from "./threads";
import { ThreadSkeleton } from "./ThreadSkeleton";

interface Props {
  id: string;
  /** The id of the message to bring into view. */
  message: number | null;
  onMenu: () => void;
}

export function ConversationPage({ id, message, onMenu }: Props) {
  const thread = threadOf(id);
  useThread(thread);
  useAnnouncements(thread);
  const t = useText();
  const wide = useWide();
  const forking = useForking(id);
  const conversation = useSelected(thread.state, (state) => state.conversation);
  const begun = useSelected(thread.state, (state) => state.sent.length > 0);
  const running = useSelected(thread.state, (state) => state.running);
  const link = useStore(thread.link);
  const mayFork = conversation !== null && !running && !conversation.channel.startsWith("delegate");

  useEffect(() => {
    if (message !== null) void thread.reveal(message);
  }, [thread, message]);

  if (link === "missing") {
    return (
      <main className="page-empty">
        <h1>{t("conversation.gone")}</h1>
        <p className="muted">{t("conversation.gone_hint")}</p>
        <Button look="primary" icon="plus" onClick={() => go({ page: "start" })}>
          {t("rail.new")}
        </Button>
      </main>
    );
  }
  return (
    <div className={wide ? "conversation conversation-wide" : "conversation"}>
      <main className="conversation-main">
        <ConversationHead thread={thread} conversation={conversation} onMenu={onMenu} />
        {conversation || begun ? (
          <MessageList key={id} thread={thread} onFork={mayFork ? forking.from : null} />
        ) : (
          <Loading lost={link === "lost"} onRetry={thread.refresh} />
        )}
        <Foot key={`foot-${id}`} thread={thread} wide={wide} forkProblem={forking.problem} />
      </main>
      {wide && <RunColumn conversationId={id} />}
    </div>
  );
}

/** Open the thread while it is in front, and look again when its runs change elsewhere. */
function useThread(thread: Thread): void {
  useEffect(() => {
    thread.open();
    const leave = hub.onFrame((frame) => {
      if (frame.type === "run" && frame.run?.conversation_id === thread.id)
        thread.heardOfRun(frame.run.status);
      if (frame.type === "snapshot" && frame.runs.some((run) => run.conversation_id === thread.id)) {
        thread.heardOfRun("running");
      }
    });
    const seen = () => {
      const at = thread.state.get().conversation?.updated_at;
      if (at && document.visibilityState === "visible") markSeen(thread.id, at);
    };
    const leaveSeen = thread.state.subscribe(seen);
    seen();
    return () => {
      thread.close();
      leave();
      leaveSeen();
    };
  }, [thread]);
}

function Loading({ lost, onRetry }: { lost: boolean; onRetry: () => void }) {
  const t = useText();
  if (lost) {
    return (
      <div className="thread page-empty">
        <p>{t("thread.not_loaded")}</p>
        <Button onClick={onRetry}>{t("common.try_again")}</Button>
      </div>
    );
  }
  return <ThreadSkeleton />;
}

/** What stands under the thread: the request that waits, queued messages, and the composer. */
function Foot({
  thread,
  wide,
  forkProblem,
}: {
  thread: Thread;
  wide: boolean;
  forkProblem: ApiError | null;
}) {
  const t = useText();
  const conversation = useSelected(thread.state, (state) => state.conversation);
  const approval = useSelected(thread.state, (state) => state.approval);
  const running = useSelected(thread.state, (state) => state.running);
  const queued = useSelected(thread.state, (state) => state.queued);
  const decision = useStore(thread.decision);
  const link = useStore(thread.link);
  const refusal = useStore(thread.refusal);
  useStore(agents);
  const composer = useRef<ComposerHandle>(null);
  const [stopping, setStopping] = useState(false);
  const [stopWords, setStopWords] = useState<string | null>(null);
  const overBudget = conversation?.over_budget ?? false;

  const stop = async () => {
    setStopping(true);
    setStopWords(null);
    const outcome = await thread.stop();
    setStopping(false);
    if (outcome.cleared.length > 0) composer.current?.putBack(outcome.cleared.join("\n\n"));
    if (outcome.error) setStopWords(t("stop.failed"));
    else if (outcome.nothingStopped) setStopWords(t("stop.nothing"));
    composer.current?.focus();
  };

  const locked = useMemo(() => {
    if (approval)
      return t(approval.kind === "question" ? "composer.waits_answer" : "composer.waits_approval");
    return overBudget ? t("composer.over_budget") : null;
  }, [approval, overBudget, t]);

  const lastOwn = () =>
    thread.state.get().messages.findLast((message) => message.role === "user" && message.author !== "system")
      ?.content ?? null;

  return (
    <div className="foot">
      {!wide && <RunStrip conversationId={thread.id} />}
      {approval && (
        <ApprovalCard
          key={approval.id}
          approval={approval}
          busy={decision?.approvalId === approval.id && decision.busy}
          problem={decision?.approvalId === approval.id ? decision.problem : null}
          onDecide={({ approve, always }) => void thread.decide(approval, approve, always)}
          onAnswer={(text) => void thread.answer(approval, text)}
        />
      )}
      {!approval && decision?.problem === "handled" && (
        <p className="foot-note" role="status">
          <Icon name="check" />
          {t("approval.handled")}
        </p>
      )}
      {queued.length > 0 && <QueueChips queued={queued} />}
      {overBudget && !approval && (
        <div className="over-budget" role="status">
          <p>{t("spend.over")}</p>
          <CapForm thread={thread} cap={conversation?.cost_cap_usd ?? 0} />
        </div>
      )}
      <EscalationLine thread={thread} />
      {forkProblem && <Problem error={forkProblem} kept={t("fork.failed")} />}
      {refusal && <Problem error={refusal} kept={t("composer.kept")} />}
      <Composer
        ref={composer}
        draftId={thread.id}
        agent={conversation ? agentName(conversation.agent_id) : ""}
        busy={running}
        locked={locked}
        stopping={stopping}
        onSend={(text) => thread.send(text)}
        onStop={() => void stop()}
        lastOwn={lastOwn}
      />
      <p className="status-slot">
        {link === "lost" ? (
          <span className="status-lost">
            <Icon name="alert" size={14} />
            {t(navigator.onLine ? "status.lost" : "status.offline")}
            <button type="button" className="text-button" onClick={thread.refresh}>
              {t("common.try_again")}
            </button>
          </span>
        ) : stopWords ? (
          <span>{stopWords}</span>
        ) : (
          <Hint />
        )}
      </p>
    </div>
  );
}

/** The turn was handed to another model, and why (GTW-282). */
function EscalationLine({ thread }: { thread: Thread }) {
  const t = useText();
  const escalation = useSelected(thread.state, (state) => state.escalation);
  if (!escalation) return null;
  const { route, error } = escalation;
  return (
    <p className="note-line note-escalated" role="status">
      <Icon name="up" />
      <span>{error ? t("note.escalated_error", { route, error }) : t("note.escalated_loop", { route })}</span>
    </p>
  );
}

function Hint() {
  const t = useText();
  return <span className="status-hint">{t("composer.hint")}</span>;
}

/** Tool calls as a list of checks: done ones folded, failed ones open with their reason (GTW-285). */

import { memo, useState } from "react";
import type { Json } from "../api/contract";
import { CopyButton } from "../design/CopyButton";
import { Icon, Spinner } from "../design/Icon";
import { duration, elapsed } from "../format/time";
import { money } from "../format/money";
import { useText, type Key } from "../i18n";
import { useNow } from "../state/clock";
import { Arguments } from "./Arguments";
import { shortArguments } from "./call-words";
import { Measures, Nested } from "./Nested";
import type { Call } from "./rows";
import type { Outcome } from "./thread-state";

const SCRIPT = "tool_script";

/** A reason up to this long is shown wrapped and whole; above it gets a scroll box. */
const WHOLE_REASON = 600;

export function CallList({ calls, waitingFor }: { calls: readonly Call[]; waitingFor: string | null }) {
  const t = useText();
  return (
    <ul className="calls" aria-label={t("call.list")}>
      {calls.map(({ call, outcome }) => (
        <ToolCard
          key={call.id}
          name={call.name}
          args={call.arguments}
          broken={call.broken}
          outcome={outcome}
          waits={call.id === waitingFor}
        />
      ))}
    </ul>
  );
}

interface Props {
  name: string;
  args: Json;
  broken: string | null;
  outcome: Outcome;
  waits: boolean;
}

const ToolCard = memo(function ToolCard({ name, args, broken, outcome, waits }: Props) {
  const t = useText();
  const failed = outcome.status === "failed";
  const [chosen, setChosen] = useState<boolean | null>(null);
  const open = chosen ?? failed;
  const finished = failed || outcome.status === "ok";
  const state = waits ? "waits" : outcome.status;
  return (
    <li className={`call call-${state}`}>
      <button
        type="button"
        className="call-head"
        aria-expanded={open}
        title={finished ? t(open ? "call.hide_result" : "call.show_result") : undefined}
        onClick={() => setChosen(!open)}
      >
        <StateIcon state={state} />
        <span className="visually-hidden">{t(STATE_WORDS[state])}</span>
        <span className="call-name">{name}</span>
        <span className="call-short">{shortArguments(args)}</span>
        <Figures outcome={outcome} waits={waits} />
        <Icon name="chevron" />
      </button>
      {outcome.status === "running" && outcome.progress && (
        <p className="call-progress">{outcome.progress}</p>
      )}
      {!open && outcome.status === "running" && <Nested calls={outcome.nested} />}
      {open && (
        <div className="call-body">
          {broken ? (
            <p className="call-broken">{t("call.broken", { reason: broken })}</p>
          ) : (
            <Arguments value={args} />
          )}
          <Nested calls={outcome.nested} />
          {name === SCRIPT && finished && (
            <Measures received={outcome.receivedChars} printed={outcome.printedChars} />
          )}
          {finished && <Result outcome={outcome} onHide={() => setChosen(false)} />}
        </div>
      )}
    </li>
  );
});

type State = Outcome["status"] | "waits";

const STATE_WORDS: Record<State, Key> = {
  proposed: "call.state.proposed",
  running: "call.state.running",
  ok: "call.state.ok",
  failed: "call.state.failed",
  waits: "call.state.waits",
};

function StateIcon({ state }: { state: State }) {
  switch (state) {
    case "running":
      return <Spinner />;
    case "ok":
      return <Icon name="check" />;
    case "failed":
      return <Icon name="failed" />;
    case "waits":
      return <Icon name="hand" />;
    case "proposed":
      return <Icon name="dots" />;
  }
}

function Figures({ outcome, waits }: { outcome: Outcome; waits: boolean }) {
  const t = useText();
  if (waits) return <span className="call-figure state-wait">{t("call.state.waits")}</span>;
  if (outcome.status === "running") return <Running since={outcome.startedAt} />;
  return (
    <>
      {outcome.shortened && <span className="call-figure">{t("call.shortened")}</span>}
      {outcome.costUsd !== null && <span className="call-figure">{money(outcome.costUsd)}</span>}
      {outcome.ms !== null && <span className="call-figure">{duration(outcome.ms)}</span>}
    </>
  );
}

function Running({ since }: { since: number | null }) {
  const now = useNow();
  return since === null ? null : <span className="call-figure">{elapsed(now - since)}</span>;
}

function Result({ outcome, onHide }: { outcome: Outcome; onHide: () => void }) {
  const t = useText();
  const failed = outcome.status === "failed";
  const boxed = !failed || outcome.output.length > WHOLE_REASON;
  return (
    <div className="call-result">
      <div className="call-result-head">
        <span>{t(failed ? "call.reason" : "call.result")}</span>
        {outcome.shortened && outcome.originalChars !== null && (
          <span className="muted">
            {t("call.shortened_from", { n: outcome.originalChars.toLocaleString() })}
          </span>
        )}
        <CopyButton text={() => outcome.output} />
      </div>
      <pre
        className={boxed ? "result-text result-box" : "result-text"}
        tabIndex={boxed ? 0 : undefined}
        aria-label={t(failed ? "call.reason" : "call.result")}
      >
        {outcome.output || t("call.empty_result")}
      </pre>
      <button type="button" className="text-button" onClick={onHide}>
        {t("call.hide_result")}
      </button>
    </div>
  );
}

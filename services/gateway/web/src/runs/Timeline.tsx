/** The steps of a run: what each did, how long it took and what it cost (GTW-228). */

import { memo, useState } from "react";
import type { RunStep } from "../api/contract";
import { Arguments } from "../chat/Arguments";
import { shortArguments } from "../chat/call-words";
import { Icon, Spinner } from "../design/Icon";
import { compact } from "../format/count";
import { money } from "../format/money";
import { duration, elapsed, exact } from "../format/time";
import { useLanguage, useText, type Key } from "../i18n";
import { useNow } from "../state/clock";
import { badgeOf, stepIcon } from "./run-words";

export function Timeline({ steps, live }: { steps: readonly RunStep[]; live: boolean }) {
  const t = useText();
  if (steps.length === 0) return <p className="muted small timeline-empty">{t("run.no_steps")}</p>;
  return (
    <ol className="timeline">
      {steps.map((step) => (
        <Step key={step.index} step={step} live={live} />
      ))}
    </ol>
  );
}

const Step = memo(function Step({ step, live }: { step: RunStep; live: boolean }) {
  const t = useText();
  const language = useLanguage();
  const [open, setOpen] = useState(false);
  const failed = step.ok === false || Boolean(step.error);
  const waits = step.kind === "approval" && step.ms === null && live;
  const runs = step.ms === null && live && !waits;
  const opens = step.kind === "tool" || step.kind === "approval";
  const badge = opens || step.kind === "review" ? badgeOf(step, t) : null;
  const timed = opens || step.kind === "model" || step.kind === "review";
  const reason = step.error ?? (failed ? step.output : null);
  const head = (
    <>
      <StepTitle step={step} />
      {badge && <span className={`badge badge-${badge.tone}`}>{badge.word}</span>}
      <span className="step-time">
        {runs || waits ? (
          <StepClock since={step.started_at} />
        ) : (
          timed && step.ms !== null && duration(step.ms)
        )}
      </span>
    </>
  );
  return (
    <li className={`step step-${step.kind} ${failed ? "step-failed" : ""} ${waits ? "step-waits" : ""}`}>
      <span className="step-icon" title={exact(step.started_at, language)}>
        {runs ? <Spinner /> : <Icon name={failed ? "failed" : stepIcon(step)} size={14} />}
      </span>
      <div className="step-body">
        {opens ? (
          <button type="button" className="step-head" aria-expanded={open} onClick={() => setOpen(!open)}>
            {head}
          </button>
        ) : (
          <div className="step-head">{head}</div>
        )}
        <StepFigures step={step} />
        {reason && <p className="step-reason">{reason}</p>}
        {step.text && (
          <p className="step-text">
            {step.kind === "tool" ? t("approvals.decided_by", { who: step.text }) : step.text}
          </p>
        )}
        {open && (
          <div className="step-detail">
            <Arguments value={step.arguments} />
            {!failed && step.output && <pre className="result-text">{step.output}</pre>}
            {step.shortened && step.original_chars !== null && (
              <p className="muted small">
                {t("call.shortened_from", { n: step.original_chars.toLocaleString() })}
              </p>
            )}
          </div>
        )}
      </div>
    </li>
  );
});

/** The model first, then where it is reached: in a narrow column the end is what is cut off. */
function Route({ route }: { route: string }) {
  const cut = Math.max(route.lastIndexOf("/"), route.indexOf(":")) + 1;
  return (
    <span className="step-title" title={route}>
      <span className="route-model">{route.slice(cut)}</span>
      <span className="call-short">{route.slice(0, cut).replace(/[:/]$/, "")}</span>
    </span>
  );
}

function StepClock({ since }: { since: string }) {
  const now = useNow();
  return elapsed(now - Date.parse(since));
}

function StepTitle({ step }: { step: RunStep }) {
  const t = useText();
  switch (step.kind) {
    case "model":
      return <Route route={step.route ?? ""} />;
    case "tool":
      return (
        <span className="step-title">
          <span className="call-name">{step.name}</span>
          <span className="call-short">{shortArguments(step.arguments)}</span>
        </span>
      );
    case "approval":
      return (
        <span className="step-title">
          {t(step.ms === null ? "step.waits" : "step.waited")}
          {step.name && <span className="call-short">{step.name}</span>}
        </span>
      );
    case "review":
      return (
        <span className="step-title">
          {t("step.review")}
          {step.name && <span className="call-short">{step.name}</span>}
        </span>
      );
    case "fallback":
      return (
        <span className="step-title step-words">
          {t("step.fallback", { route: step.route ?? "", next: step.next_route ?? "" })}
        </span>
      );
    case "escalation":
      return (
        <span className="step-title step-words">{t("step.escalation", { route: step.route ?? "" })}</span>
      );
    case "steer":
      return <span className="step-title">{t("step.steer")}</span>;
    case "compacted":
      return <span className="step-title">{t("step.compacted")}</span>;
    case "continued":
      return <span className="step-title">{t("step.continued")}</span>;
    default:
      return <span className="step-title">{t("step.note")}</span>;
  }
}

/** Parts of the prompt that changed, so that they were not read from the provider's cache. */
const MOVED: Record<string, Key> = {
  frame: "step.moved.frame",
  tools: "step.moved.tools",
  persona: "step.moved.persona",
  user: "step.moved.user",
};

function StepFigures({ step }: { step: RunStep }) {
  const t = useText();
  const figures: string[] = [];
  if (step.kind === "model") {
    if (step.first_token_ms !== null)
      figures.push(t("step.first_token", { time: duration(step.first_token_ms) }));
    if (step.prompt_tokens !== null) {
      figures.push(
        step.cached_tokens
          ? t("step.tokens_in_cached", {
              n: compact(step.prompt_tokens),
              cached: compact(step.cached_tokens),
            })
          : t("step.tokens_in", { n: compact(step.prompt_tokens) }),
      );
    }
    if (step.completion_tokens !== null)
      figures.push(t("step.tokens_out", { n: compact(step.completion_tokens) }));
    if (step.reasoning_tokens) figures.push(t("step.tokens_thought", { n: compact(step.reasoning_tokens) }));
    if (step.ms !== null) {
      const cost = step.cost_usd === null ? t("run.cost_unknown") : money(step.cost_usd);
      figures.push(step.cost_estimated ? `≈ ${cost}` : cost);
    }
    if (step.moved.length > 0) {
      const parts = step.moved.map((part) => (MOVED[part] ? t(MOVED[part]) : part));
      figures.push(t("step.moved", { parts: parts.join(", ") }));
    }
  } else if (step.cost_usd !== null) {
    figures.push(money(step.cost_usd));
  }
  if (figures.length === 0) return null;
  return (
    <p className="step-figures">
      {figures.map((figure) => (
        <span key={figure}>{figure}</span>
      ))}
    </p>
  );
}

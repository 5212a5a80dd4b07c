import { useState } from "react";
import type { Conversation } from "../api/contract";
import { ApiError } from "../api/http";
import { Button } from "../design/Button";
import { Card } from "../design/Card";
import { useSentence } from "../design/Problem";
import { limit, money } from "../format/money";
import { usePlural, useText } from "../i18n";
import type { Thread } from "./thread";

const STEPS_USD = [0.5, 1];

/** What the conversation has spent, of how much, and a way to raise the cap (GTW-217). */
export function SpendCard({ thread, conversation }: { thread: Thread; conversation: Conversation }) {
  const t = useText();
  const { spent_usd: spent, cost_cap_usd: cap, over_budget: over } = conversation;
  return (
    <Card
      label={t("spend.title")}
      className="spend-anchor"
      pill={
        <>
          <span className={over ? "pill-figure pill-over" : "pill-figure"}>{money(spent)}</span>
          {cap > 0 && <span className="pill-of">/ {limit(cap)}</span>}
        </>
      }
    >
      <SpendBody thread={thread} conversation={conversation} />
    </Card>
  );
}

function SpendBody({ thread, conversation }: { thread: Thread; conversation: Conversation }) {
  const t = useText();
  const plural = usePlural();
  const {
    spent_usd: spent,
    cost_cap_usd: cap,
    over_budget: over,
    unknown_cost_calls: unknown,
  } = conversation;
  return (
    <div className="spend">
      <h2>{t("spend.title")}</h2>
      {cap > 0 ? (
        <>
          <meter
            className={over ? "spend-bar spend-bar-over" : "spend-bar"}
            min={0}
            max={cap}
            value={Math.min(spent, cap)}
            aria-label={t("spend.title")}
          />
          <p className="spend-line">
            <span>{t("spend.spent", { spent: money(spent) })}</span>
            <span>
              {over ? t("spend.nothing_left") : t("spend.left", { left: money(Math.max(0, cap - spent)) })}
            </span>
          </p>
        </>
      ) : (
        <p className="spend-line">
          <span>{t("spend.spent", { spent: money(spent) })}</span>
          <span>{t("spend.no_cap")}</span>
        </p>
      )}
      {unknown > 0 && (
        <p className="muted small">{plural("spend.unknown.one", "spend.unknown.other", unknown)}</p>
      )}
      <CapForm thread={thread} cap={cap} />
    </div>
  );
}

export function CapForm({ thread, cap }: { thread: Thread; cap: number }) {
  const t = useText();
  const sentence = useSentence();
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<string | null>(null);
  const amount = Number(typed.replace(",", "."));

  const raise = async (to: number) => {
    setError(null);
    try {
      await thread.change({ cost_cap_usd: Math.round(to * 10_000) / 10_000 });
      setTyped("");
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setError(sentence(cause));
    }
  };
  return (
    <form
      className="cap-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed.trim() && amount >= 0) void raise(amount);
      }}
    >
      {STEPS_USD.map((step) => (
        <Button key={step} onClick={() => void raise(cap + step)} disabled={cap === 0}>
          +{limit(step)}
        </Button>
      ))}
      <label className="cap-amount">
        <span className="muted">{t("spend.cap")}</span>
        <input
          className="field"
          inputMode="decimal"
          value={typed}
          placeholder={cap > 0 ? String(cap) : "0"}
          onChange={(event) => setTyped(event.target.value)}
        />
      </label>
      <Button type="submit" disabled={!typed.trim() || !(amount >= 0)}>
        {t("spend.set")}
      </Button>
      <p className="muted small">{t("spend.zero_lifts")}</p>
      {error && (
        <p className="form-error" role="alert">
          {error}
        </p>
      )}
    </form>
  );
}

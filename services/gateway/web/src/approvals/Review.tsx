import type { Review as Judgement } from "../api/contract";
import { Revealed } from "../design/Revealed";
import { useText, type Key } from "../i18n";

const VERDICTS: Record<string, Key> = {
  allow: "review.allow",
  ask: "review.ask",
  deny: "review.deny",
  none: "review.none",
};

/** What a second model said of the call; its words are a judgement, not the owner's. */
export function Review({ review }: { review: Judgement }) {
  const t = useText();
  const verdict = VERDICTS[review.verdict];
  return (
    <p className={`approval-review review-${review.verdict}`}>
      <span className="approval-reason-label">
        {t("review.by", { route: review.route || t("review.somebody") })}
      </span>{" "}
      {verdict ? t(verdict) : review.verdict}
      {review.reason && (
        <>
          {" "}
          <q>
            <Revealed text={review.reason} />
          </q>
        </>
      )}
    </p>
  );
}

import type { Approval } from "../api/contract";
import { Arguments, Preview } from "../chat/Arguments";
import { quotedIn } from "../chat/call-words";
import { Revealed } from "../design/Revealed";
import { useText } from "../i18n";
import { Review } from "./Review";

/** A reason with what it quotes set apart. */
function Reason({ text }: { text: string }) {
  return text.split(/(`[^`]+`|“[^”]+”)/).map((part, index) =>
    index % 2 === 1 ? (
      <code key={index}>
        <Revealed text={part.slice(1, -1)} />
      </code>
    ) : (
      <Revealed key={index} text={part} />
    ),
  );
}

/** What will happen, why it asks, and everything it would run with. */
export function ApprovalBody({ approval }: { approval: Approval }) {
  const t = useText();
  return (
    <>
      {approval.reason && (
        <p className="approval-reason">
          <span className="approval-reason-label">{t("approval.because")}</span>{" "}
          <Reason text={approval.reason} />
        </p>
      )}
      {approval.review && <Review review={approval.review} />}
      <div className="approval-scroll" tabIndex={0} role="region" aria-label={t("approval.arguments")}>
        {approval.preview && <Preview text={approval.preview} />}
        <Arguments value={approval.arguments} marks={quotedIn(approval.reason)} />
      </div>
    </>
  );
}

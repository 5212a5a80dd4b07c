import { useState } from "react";
import { auth, type Session } from "../api/crew";
import { ApiError } from "../api/http";
import { Button } from "../design/Button";
import { useSentence } from "../design/Problem";
import { exact } from "../format/time";
import { useLanguage, useText } from "../i18n";
import { Panel } from "./Section";

export function SessionsPanel({ session }: { session: Session }) {
  const t = useText();
  const language = useLanguage();
  const sentence = useSentence();
  const [said, setSaid] = useState<string | null>(null);

  const end = async () => {
    try {
      await auth.endOtherSessions();
      setSaid(t("sessions.ended"));
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setSaid(sentence(cause));
    }
  };
  return (
    <Panel title={t("sessions.title")} hint={t("sessions.hint")}>
      <div className="panel-line">
        <span>
          {session.expires_at
            ? t("sessions.this_until", { until: exact(session.expires_at, language) })
            : t("sessions.this")}
        </span>
        <Button onClick={() => void end()}>{t("sessions.end_others")}</Button>
      </div>
      {said && <p role="status">{said}</p>}
    </Panel>
  );
}

import { useState } from "react";
import type { Approval } from "../api/contract";
import { Button } from "../design/Button";
import { Spinner } from "../design/Icon";
import { useText } from "../i18n";

interface Props {
  approval: Approval;
  busy: boolean;
  off: boolean;
  onAnswer: (text: string) => void;
}

/** The options as buttons, and a box for other words. */
export function QuestionForm({ approval, busy, off, onAnswer }: Props) {
  const t = useText();
  const [words, setWords] = useState("");
  return (
    <form
      className="question-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (words.trim()) onAnswer(words.trim());
      }}
    >
      {approval.options.length > 0 && (
        <div className="question-options" role="group" aria-label={t("question.options")}>
          {approval.options.map((option) => (
            <Button key={option} disabled={busy || off} onClick={() => onAnswer(option)}>
              {option}
            </Button>
          ))}
        </div>
      )}
      <div className="question-own">
        <input
          className="field"
          value={words}
          disabled={busy || off}
          placeholder={t(approval.options.length > 0 ? "question.other" : "question.answer")}
          aria-label={t("question.answer")}
          onChange={(event) => setWords(event.target.value)}
        />
        <Button type="submit" look="primary" disabled={busy || off || words.trim() === ""}>
          {busy && <Spinner />}
          {t("question.send")}
        </Button>
      </div>
    </form>
  );
}

import type { ReactNode } from "react";
import { ApiError } from "../api/http";
import { useText, type Key } from "../i18n";
import { CopyButton } from "./CopyButton";
import { Icon } from "./Icon";

const BY_STATUS: Partial<Record<number, Key>> = {
  0: "error.no_answer",
  401: "error.logged_out",
  403: "error.not_allowed",
  404: "error.not_found",
  413: "error.too_large",
  429: "error.too_many",
  503: "error.service_down",
  507: "error.full",
};

/** The server's sentence, or the page's own for its status: never a bare code. */
export function useSentence(): (error: ApiError) => string {
  const t = useText();
  return (error) => error.detail || t(BY_STATUS[error.status] ?? "error.failed");
}

interface Props {
  error: ApiError;
  /** What was kept, in the caller's words. */
  kept?: string;
  /** What can be done: buttons. */
  children?: ReactNode;
}

/** What happened, what was kept, what to do, and details to copy. */
export function Problem({ error, kept, children }: Props) {
  const t = useText();
  const sentence = useSentence();
  return (
    <div className="problem" role="alert">
      <Icon name="alert" />
      <div className="problem-text">
        <p>{sentence(error)}</p>
        {kept && <p className="muted">{kept}</p>}
        <div className="problem-actions">
          {children}
          <CopyButton
            label={t("error.copy_details")}
            text={() => [error.technical, error.detail, new Date().toISOString()].filter(Boolean).join("\n")}
          />
        </div>
      </div>
    </div>
  );
}

import type { ReactNode } from "react";
import { Button } from "../design/Button";
import { Problem } from "../design/Problem";
import { useText } from "../i18n";
import type { Loaded } from "./useLoad";

export function SectionHead({
  title,
  hint,
  children,
}: {
  title: string;
  hint?: string;
  children?: ReactNode;
}) {
  return (
    <header className="section-head">
      <div>
        <h1>{title}</h1>
        {hint && <p className="muted">{hint}</p>}
      </div>
      {children}
    </header>
  );
}

export function Panel({ title, hint, children }: { title: string; hint?: string; children: ReactNode }) {
  return (
    <section className="panel" aria-label={title}>
      <header className="panel-head">
        <h2>{title}</h2>
        {hint && <p className="muted small">{hint}</p>}
      </header>
      {children}
    </section>
  );
}

/** The error of a load, above whatever was kept of an earlier one. */
export function LoadProblem<T>({ loaded }: { loaded: Loaded<T> }) {
  const t = useText();
  if (!loaded.error) return null;
  return (
    <Problem error={loaded.error} {...(loaded.data ? { kept: t("manage.kept") } : {})}>
      <Button onClick={loaded.again}>{t("common.try_again")}</Button>
    </Problem>
  );
}

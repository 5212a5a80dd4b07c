import { useState, type ReactNode } from "react";
import { useText } from "../i18n";
import { Icon } from "./Icon";

const FOLD_LINES = 18;
const FOLD_CHARACTERS = 1800;

/** Long text folds with a fade and says how much there is. */
export function Fold({ text, children }: { text: string; children: ReactNode }) {
  const t = useText();
  const [open, setOpen] = useState(false);
  const lines = text.split("\n").length;
  if (lines <= FOLD_LINES && text.length <= FOLD_CHARACTERS) return children;
  return (
    <div className={open ? "fold fold-open" : "fold"}>
      <div className="fold-body">{children}</div>
      <button type="button" className="fold-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" />
        {open
          ? t("common.show_less")
          : t("common.show_all", { lines, characters: text.length.toLocaleString() })}
      </button>
    </div>
  );
}

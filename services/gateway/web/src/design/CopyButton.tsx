import { useEffect, useRef, useState } from "react";
import { Dialog } from "./Dialog";
import { Icon } from "./Icon";
import { useText } from "../i18n";

/** Copies a text; where the clipboard refuses, opens a box to copy from by hand (GTW-235). */
export function CopyButton({ text, label }: { text: () => string; label?: string }) {
  const t = useText();
  const [done, setDone] = useState(false);
  const [byHand, setByHand] = useState<string | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);

  const copy = async () => {
    const value = text();
    try {
      await navigator.clipboard.writeText(value);
    } catch {
      setByHand(value);
      return;
    }
    setDone(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setDone(false), 1600);
  };
  const name = label ?? t("common.copy");
  return (
    <>
      <button
        type="button"
        className="copy-button"
        aria-label={done ? t("common.copied") : name}
        title={done ? t("common.copied") : name}
        onClick={() => void copy()}
      >
        <Icon name={done ? "check" : "copy"} />
        {label && <span>{done ? t("common.copied") : label}</span>}
      </button>
      {byHand !== null && (
        <Dialog title={t("common.copy_by_hand")} onClose={() => setByHand(null)}>
          <textarea
            className="field by-hand"
            readOnly
            value={byHand}
            rows={8}
            aria-label={t("common.copy_by_hand")}
            onFocus={(event) => event.target.select()}
          />
        </Dialog>
      )}
    </>
  );
}

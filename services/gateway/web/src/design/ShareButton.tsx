import { Icon } from "./Icon";
import { useText } from "../i18n";

const CAN_SHARE = typeof navigator !== "undefined" && "share" in navigator;

/** Hands a text to the device's share sheet; nothing where the device has none (GTW-235). */
export function ShareButton({ text, label }: { text: string; label?: string }) {
  const t = useText();
  if (!CAN_SHARE) return null;
  const name = label ?? t("common.share");
  return (
    <button
      type="button"
      className="copy-button"
      aria-label={name}
      title={name}
      // A person who closes the sheet refuses it: nothing to tell.
      onClick={() => void navigator.share({ text }).catch(() => undefined)}
    >
      <Icon name="share" />
      {label && <span>{label}</span>}
    </button>
  );
}

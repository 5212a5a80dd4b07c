import type { useText } from "../i18n";

/** Why a turn was halted, as a sentence. */
export function haltWords(reason: string, t: ReturnType<typeof useText>): string {
  switch (reason) {
    case "budget":
      return t("halt.budget");
    case "max_steps":
      return t("halt.max_steps");
    case "loop":
      return t("halt.loop");
    case "nested_calls":
      return t("halt.nested_calls");
    case "errors":
      return t("halt.errors");
    case "time":
      return t("halt.time");
    case "context":
      return t("halt.context");
    default:
      return t("halt.other", { reason });
  }
}

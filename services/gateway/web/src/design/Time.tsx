import { exact, relative } from "../format/time";
import { useLanguage } from "../i18n";
import { useNow } from "../state/clock";

/** A relative time with the exact one on hover. */
export function Time({ iso }: { iso: string }) {
  const now = useNow(15);
  const language = useLanguage();
  return (
    <time className="time" dateTime={iso} title={exact(iso, language)}>
      {relative(iso, now, language)}
    </time>
  );
}

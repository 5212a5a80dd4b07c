import { useText } from "../i18n";

/** Where a thread is about to stand. */
export function ThreadSkeleton() {
  const t = useText();
  return (
    <div className="thread skeleton" aria-label={t("thread.loading")} role="status">
      <div className="skeleton-line skeleton-own" />
      <div className="skeleton-line" />
      <div className="skeleton-line" />
      <div className="skeleton-line skeleton-short" />
    </div>
  );
}

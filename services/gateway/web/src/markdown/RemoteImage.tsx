import { useState } from "react";
import { Icon } from "../design/Icon";
import { useText } from "../i18n";
import { safeLink } from "./links";

/** A picture of another site loads only when the person says so, and tells that site nothing (GTW-234). */
export function RemoteImage({ href, alt }: { href: string; alt: string }) {
  const t = useText();
  const [shown, setShown] = useState(false);
  const [failed, setFailed] = useState(false);
  const url = safeLink(href);
  if (!url || url.protocol === "mailto:") return alt;
  if (failed) return <span className="muted">{t("markdown.image_failed", { host: url.host })}</span>;
  if (!shown) {
    return (
      <button type="button" className="image-gate" onClick={() => setShown(true)}>
        <Icon name="image" />
        <span>
          {t("markdown.load_image", { host: url.host })}
          {alt && <span className="muted"> · {alt}</span>}
        </span>
      </button>
    );
  }
  return (
    <img
      className="remote-image"
      src={url.href}
      alt={alt}
      referrerPolicy="no-referrer"
      loading="lazy"
      decoding="async"
      onError={() => setFailed(true)}
    />
  );
}

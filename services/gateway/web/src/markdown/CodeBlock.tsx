import { CopyButton } from "../design/CopyButton";
import { ShareButton } from "../design/ShareButton";
import { Fold } from "../design/Fold";
import { useText } from "../i18n";

export function CodeBlock({ text, language }: { text: string; language: string }) {
  const t = useText();
  return (
    <figure className="code-block">
      <figcaption>
        <span>{language}</span>
        <span className="code-actions">
          <ShareButton text={text} label={t("markdown.share_code")} />
          <CopyButton text={() => text} label={t("markdown.copy_code")} />
        </span>
      </figcaption>
      <Fold text={text}>
        <pre tabIndex={0} aria-label={t("markdown.code")}>
          <code>{text}</code>
        </pre>
      </Fold>
    </figure>
  );
}

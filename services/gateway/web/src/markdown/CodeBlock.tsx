import { CopyButton } from "../design/CopyButton";
import { Fold } from "../design/Fold";
import { useText } from "../i18n";

export function CodeBlock({ text, language }: { text: string; language: string }) {
  const t = useText();
  return (
    <figure className="code-block">
      <figcaption>
        <span>{language}</span>
        <CopyButton text={() => text} />
      </figcaption>
      <Fold text={text}>
        <pre tabIndex={0} aria-label={t("markdown.code")}>
          <code>{text}</code>
        </pre>
      </Fold>
    </figure>
  );
}

import type { Json } from "../api/contract";
import { Revealed } from "../design/Revealed";
import { useText } from "../i18n";
import { asRecord, isDiff, readable } from "./call-words";

/** Every argument in full, as it will run. */
export function Arguments({ value, marks = [] }: { value: Json; marks?: readonly string[] }) {
  const t = useText();
  const entries = Object.entries(asRecord(value));
  if (entries.length === 0) return <p className="muted small">{t("call.no_arguments")}</p>;
  return (
    <dl className="arguments">
      {entries.map(([name, argument]) => {
        const text = readable(argument);
        const command = name === "command";
        return (
          <div key={name} className={text.includes("\n") || command ? "argument argument-block" : "argument"}>
            <dt>{name}</dt>
            <dd className={command ? "command" : undefined}>
              <Revealed text={text} marks={command ? marks : []} />
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

/** What the tool host shows of the effect: a diff by line, other text as it is. */
export function Preview({ text }: { text: string }) {
  const t = useText();
  const diff = isDiff(text);
  return (
    <pre className="preview" tabIndex={0} aria-label={t("approval.preview")}>
      {diff ? (
        text
          .trimEnd()
          .split("\n")
          .map((line, index) => (
            <span key={index} className={`diff-line ${lineKind(line)}`}>
              <Revealed text={line} />
              {"\n"}
            </span>
          ))
      ) : (
        <Revealed text={text} />
      )}
    </pre>
  );
}

function lineKind(line: string): string {
  if (/^(\+\+\+|---|diff |index )/.test(line)) return "diff-file";
  if (line.startsWith("@@")) return "diff-place";
  if (line.startsWith("+")) return "diff-added";
  if (line.startsWith("-")) return "diff-removed";
  return "";
}

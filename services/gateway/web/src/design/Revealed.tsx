import { reveal } from "../format/hidden";
import { useText } from "../i18n";

/** Text with everything invisible in it written out (FLD-025); `marks` are strings to point at. */
export function Revealed({ text, marks = [] }: { text: string; marks?: readonly string[] }) {
  const t = useText();
  return reveal(text).map((piece, index) => {
    switch (piece.kind) {
      case "text":
        return <Marked key={index} text={piece.text} marks={marks} />;
      case "code":
        return (
          <span key={index} className="hidden-code">
            {piece.text}
          </span>
        );
      case "blanks":
        return (
          <span key={index} className="hidden-blanks">
            {t("hidden.blanks", { n: piece.count })}
          </span>
        );
      case "host":
        return (
          <span key={index} className="hidden-code">
            {piece.text}
            {piece.mixed && ` ${t("hidden.mixed")}`}
          </span>
        );
    }
  });
}

function Marked({ text, marks }: { text: string; marks: readonly string[] }) {
  const mark = marks.find((candidate) => candidate && text.includes(candidate));
  if (!mark) return text;
  const at = text.indexOf(mark);
  return (
    <>
      {text.slice(0, at)}
      <mark>{mark}</mark>
      <Marked text={text.slice(at + mark.length)} marks={marks} />
    </>
  );
}

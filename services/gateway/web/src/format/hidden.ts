/**
 * Text as a person has to read it before saying yes (FLD-025): what the eye would miss is written out.
 * What runs is unchanged; only the drawing differs.
 */

export type Piece =
  | { kind: "text"; text: string }
  /** An invisible character, as its code. */
  | { kind: "code"; text: string }
  /** A run of more than four blanks. */
  | { kind: "blanks"; count: number }
  /** A host with letters outside ASCII, in the form that is looked up. */
  | { kind: "host"; text: string; mixed: boolean };

const INVISIBLE =
  /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Bidi_Control}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u2800]|(?![\n\t])\p{Cc}/u;
const BLANK = "[ \\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]";
const HOST = "(?<=:\\/\\/(?:[^\\s/?#@]*@)?)[^\\s/?#:@\"'<>]*[^\\x00-\\x7f][^\\s/?#:@\"'<>]*";
const SPECIAL = new RegExp(`(${HOST})|(${BLANK}{5,})|(${INVISIBLE.source})`, "gu");

/** Cut `text` into plain pieces and the ones to be written out. */
export function reveal(text: string): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(SPECIAL)) {
    if (match.index > end) pieces.push({ kind: "text", text: text.slice(end, match.index) });
    end = match.index + match[0].length;
    const [whole, host, blanks] = match;
    if (host !== undefined) pieces.push(hostPiece(host));
    else if (blanks !== undefined) pieces.push({ kind: "blanks", count: blanks.length });
    else pieces.push({ kind: "code", text: codeOf(whole) });
  }
  if (end < text.length) pieces.push({ kind: "text", text: text.slice(end) });
  return pieces;
}

/** The same as one string, for places that take no markup. */
export function revealText(text: string): string {
  return reveal(text)
    .map((piece) => {
      if (piece.kind === "blanks") return `[${piece.count} blanks]`;
      if (piece.kind === "host") return piece.mixed ? `${piece.text} [mixed letters]` : piece.text;
      return piece.text;
    })
    .join("");
}

function codeOf(character: string): string {
  return `[U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`;
}

function hostPiece(host: string): Piece {
  let ascii = host;
  try {
    ascii = new URL(`http://${host}/`).hostname;
  } catch {
    // No valid name: each odd letter as its code.
    ascii = [...host].map((letter) => (letter > "\u007f" ? codeOf(letter) : letter)).join("");
  }
  return { kind: "host", text: ascii, mixed: host.split(".").some(isMixed) };
}

const SCRIPTS = ["Latin", "Cyrillic", "Greek", "Armenian", "Hebrew", "Arabic", "Cherokee", "Georgian"].map(
  (name) => new RegExp(`\\p{Script=${name}}`, "u"),
);

function isMixed(label: string): boolean {
  return SCRIPTS.filter((script) => script.test(label)).length > 1;
}

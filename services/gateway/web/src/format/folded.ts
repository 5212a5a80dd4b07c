/** Finding words as the server's search does: case, accents and the stroke of đ make no difference. */

/** `text` with each character reduced to its bare letter, and where in `text` each of them came from. */
function fold(text: string): { folded: string; from: number[] } {
  let folded = "";
  const from: number[] = [];
  let at = 0;
  for (const character of text) {
    const bare = character.normalize("NFD").replace(/\p{M}/gu, "").replace(/[đĐ]/g, "d").toLowerCase();
    folded += bare;
    for (let unit = 0; unit < bare.length; unit++) from.push(at);
    at += character.length;
  }
  from.push(text.length);
  return { folded, from };
}

export function foldedIncludes(text: string, wanted: string): boolean {
  return fold(text).folded.includes(fold(wanted).folded);
}

export interface Part {
  text: string;
  found: boolean;
}

/** Cut `text` at every place where one of the words of `query` stands. */
export function foundParts(text: string, query: string): Part[] {
  const { folded, from } = fold(text);
  const marked = new Array<boolean>(text.length).fill(false);
  for (const word of fold(query).folded.split(/\s+/).filter(Boolean)) {
    for (let at = folded.indexOf(word); at >= 0; at = folded.indexOf(word, at + word.length)) {
      // Combining marks behind the last letter belong to it.
      marked.fill(true, from[at], from[at + word.length]);
    }
  }
  const parts: Part[] = [];
  let start = 0;
  for (let end = 1; end <= text.length; end++) {
    if (end < text.length && marked[end] === marked[start]) continue;
    parts.push({ text: text.slice(start, end), found: marked[start] ?? false });
    start = end;
  }
  return parts;
}

/** One line of a reply, without the signs of Markdown: for lists and titles. */
export function plainLine(markdown: string): string {
  return markdown
    .replace(/```[^\n`]*/g, " ")
    .replace(/!?\[([^\]\n]*)\]\([^)\s]*\)/g, "$1")
    .replace(/(\*\*|__|~~|`)(?=\S)(.+?)(?<=\S)\1/g, "$2")
    .replace(/^\s{0,3}(#{1,6}|[-*+>])\s+/gm, "")
    .replace(/\s+/g, " ")
    .trim();
}

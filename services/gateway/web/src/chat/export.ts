/** A conversation as Markdown, for keeping. */

import type { Message } from "../api/contract";
import { conversations } from "../api/crew";
import { saveFile } from "../format/save";

const PAGE = 500;

/** Every message, however many pages that is. */
async function allMessages(id: string): Promise<Message[]> {
  let messages: Message[] = [];
  let before: number | undefined;
  for (;;) {
    const page = await conversations.get(id, before, PAGE);
    messages = [...page.messages, ...messages];
    before = page.messages[0]?.seq;
    if (!page.has_earlier || before === undefined) return messages;
  }
}

export function asMarkdown(
  title: string,
  messages: readonly Message[],
  names: { you: string; agent: string },
): string {
  const parts = [`# ${title.replace(/\s+/g, " ")}`];
  for (const message of messages) {
    if (message.role === "user") parts.push(`**${names.you}**\n\n${message.content}`);
    else if (message.role === "assistant") {
      if (message.content.trim()) parts.push(`**${names.agent}**\n\n${message.content}`);
      for (const call of message.tool_calls) {
        parts.push(`\`${call.name}\`\n\n${fenced(JSON.stringify(call.arguments, null, 2), "json")}`);
      }
    } else parts.push(fenced(message.content, ""));
  }
  return `${parts.join("\n\n")}\n`;
}

/** A fence longer than any run of backticks inside. */
function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

/** Save the conversation as `<title>.md`. */
export async function exportConversation(
  id: string,
  title: string,
  names: { you: string; agent: string },
): Promise<void> {
  const text = asMarkdown(title, await allMessages(id), names);
  const name = title
    .replace(/[\\/:*?"<>|\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, 80);
  saveFile(new Blob([text], { type: "text/markdown" }), `${name || "conversation"}.md`);
}

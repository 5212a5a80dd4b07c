/** Server-sent events over fetch, so that a POST can answer with them and a status can refuse them. */

import { ApiError } from "./http";

export interface Frame {
  id: string;
  data: string;
}

/** Takes a stream apart into frames, wherever the network cut it. */
export class FrameParser {
  #rest = "";

  /** The frames completed by `chunk`; comments (heartbeats) are dropped. */
  push(chunk: string): Frame[] {
    const text = this.#rest + chunk;
    // A lone CR at the end may be the first half of CRLF: it waits for the next chunk.
    const end = text.endsWith("\r") ? text.length - 1 : text.length;
    const lines = text.slice(0, end).replace(/\r\n?/g, "\n");
    const blocks = lines.split("\n\n");
    this.#rest = (blocks.pop() ?? "") + text.slice(end);
    const frames: Frame[] = [];
    for (const block of blocks) {
      const frame = parseBlock(block);
      if (frame) frames.push(frame);
    }
    return frames;
  }
}

function parseBlock(block: string): Frame | null {
  let id = "";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") data.push(value);
    else if (field === "id") id = value;
  }
  return data.length > 0 ? { id, data: data.join("\n") } : null;
}

/** Silence longer than this means a dead connection: the server sends a heartbeat every 15 s. */
export const SILENCE_MS = 45_000;

/**
 * Read a response to its end and hand every event to `onEvent`, judged by its `type` (GTW-128).
 *
 * Events that arrived together are handed over together, so that a replayed turn is drawn once.
 * Raises ApiError with status 0 when the stream falls silent or breaks.
 */
export async function readEvents<E extends { type: string }>(
  response: Response,
  onEvents: (events: { id: string; event: E }[]) => void,
  abort: AbortController,
): Promise<void> {
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parser = new FrameParser();
  let silent = false;
  const silence = () => {
    silent = true;
    abort.abort();
  };
  let timer = setTimeout(silence, SILENCE_MS);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      clearTimeout(timer);
      if (done) return;
      timer = setTimeout(silence, SILENCE_MS);
      const events: { id: string; event: E }[] = [];
      for (const frame of parser.push(decoder.decode(value, { stream: true }))) {
        const event = parseEvent<E>(frame.data);
        if (event) events.push({ id: frame.id, event });
      }
      if (events.length > 0) onEvents(events);
    }
  } catch (cause) {
    if (abort.signal.aborted && !silent) throw cause;
    throw new ApiError(0, "", silent ? "stream silent" : `stream broke: ${String(cause)}`);
  } finally {
    clearTimeout(timer);
  }
}

function parseEvent<E extends { type: string }>(data: string): E | null {
  try {
    const value = JSON.parse(data) as E | null;
    return value && typeof value === "object" && typeof value.type === "string" ? value : null;
  } catch {
    return null;
  }
}

import { describe, expect, it } from "vitest";
import { FrameParser, readEvents } from "../src/api/sse";

const WIRE =
  'id: r1:1\r\nevent: text_delta\r\ndata: {"type":"text_delta","text":"xin chào"}\r\n\r\n' +
  ": keep-alive\n\n" +
  'id: r1:2\nevent: done\ndata: {"type":"done","text":"xin chào"}\n\n';

describe("frames of a stream", () => {
  it("[GTW-128] reads the same frames wherever the network cuts them", () => {
    for (let cut = 0; cut <= WIRE.length; cut++) {
      const parser = new FrameParser();
      const frames = [...parser.push(WIRE.slice(0, cut)), ...parser.push(WIRE.slice(cut))];
      expect(frames.map((frame) => frame.id)).toEqual(["r1:1", "r1:2"]);
      expect(JSON.parse(frames[0]?.data ?? "")).toEqual({ type: "text_delta", text: "xin chào" });
    }
  });

  it("keeps a half frame until the rest comes", () => {
    const parser = new FrameParser();
    expect(parser.push('data: {"type":"do')).toEqual([]);
    expect(parser.push('ne"}\n')).toEqual([]);
    expect(parser.push("\n")).toHaveLength(1);
  });

  it("survives characters cut in the middle of their bytes, unreadable data and unknown kinds", async () => {
    const bytes = new TextEncoder().encode(
      'data: not json\n\ndata: {"type":"from_the_future"}\n\ndata: {"type":"text_delta","text":"đường"}\n\n',
    );
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
        controller.close();
      },
    });
    const seen: unknown[] = [];
    await readEvents<{ type: string }>(
      new Response(body),
      (events) => seen.push(...events.map(({ event }) => event)),
      new AbortController(),
    );
    expect(seen).toEqual([{ type: "from_the_future" }, { type: "text_delta", text: "đường" }]);
  });
});

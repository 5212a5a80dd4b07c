/** The windowed thread: follows the end while the reader is there, and never moves what is being read. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { Icon, Spinner } from "../design/Icon";
import { usePlural, useText } from "../i18n";
import { useStore } from "../state/store";
import { MessageRow } from "./MessageRow";
import { liveRow, rowKey, saidRows } from "./rows";
import type { Thread } from "./thread";

/** Within this many pixels of the end the view follows (FLD-078). */
const FOLLOW_WITHIN = 100;
const LOAD_EARLIER_WITHIN = 600;

interface Props {
  thread: Thread;
  onFork: ((messageId: number) => void) | null;
}

export function MessageList({ thread, onFork }: Props) {
  const t = useText();
  const plural = usePlural();
  const state = useStore(thread.state);
  const loadingEarlier = useStore(thread.loadingEarlier);
  const { messages, sent, notes, outcomes } = state;
  // A token changes the streamed row alone: the others keep their identity and are not drawn again.
  const said = useMemo(
    () => saidRows({ messages, sent, notes, outcomes }),
    [messages, sent, notes, outcomes],
  );
  const live = liveRow(state);
  const rows = live ? [...said, live] : said;
  const scroller = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const following = useRef(true);
  const seenMessages = useRef(0);
  const [below, setBelow] = useState<number | null>(null);

  // Rows added in front keep the reader's place; only then may the list hold on to its end.
  const firstSeq = state.messages[0]?.seq ?? 0;
  const [edge, setEdge] = useState({ firstSeq, rows: rows.length, grewInFront: false });
  if (edge.firstSeq !== firstSeq || edge.rows !== rows.length) {
    const grewInFront = edge.firstSeq !== 0 && firstSeq < edge.firstSeq;
    setEdge({ firstSeq, rows: rows.length, grewInFront });
  }

  const count = state.messages.length + state.sent.length;

  useEffect(() => {
    const box = scroller.current;
    const content = inner.current;
    if (!box || !content) return;
    const stick = () => {
      if (following.current) box.scrollTop = box.scrollHeight;
    };
    stick();
    // Pictures that arrive late and cards that open change the height too.
    const watch = new ResizeObserver(stick);
    watch.observe(content);
    watch.observe(box);
    return () => watch.disconnect();
  }, []);

  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    if (following.current) {
      box.scrollTop = box.scrollHeight;
      seenMessages.current = count;
    } else {
      setBelow(Math.max(0, count - seenMessages.current));
    }
  }, [count]);

  // A message that a search led to: beside it the end is not followed.
  const wanted = useStore(thread.wanted);
  const wantedSeq = wanted === null ? undefined : messages.find(({ id }) => id === wanted)?.seq;
  const wantedIndex = wantedSeq === undefined ? -1 : rows.findIndex(({ key }) => key === rowKey(wantedSeq));
  const [found, setFound] = useState<string | null>(null);
  if (wantedSeq !== undefined && wantedIndex >= 0 && found !== rowKey(wantedSeq)) setFound(rowKey(wantedSeq));
  useEffect(() => {
    if (wantedIndex < 0) return;
    following.current = false;
    list.current?.scrollToIndex(wantedIndex, { align: "center" });
    thread.wanted.set(null);
  }, [thread, wantedIndex]);

  const toEnd = () => {
    following.current = true;
    setBelow(null);
    const box = scroller.current;
    if (box) box.scrollTop = box.scrollHeight;
  };

  // One's own new message is always wanted in view.
  const sentCount = state.sent.length;
  const [sentBefore, setSentBefore] = useState(sentCount);
  if (sentBefore !== sentCount) {
    setSentBefore(sentCount);
    if (sentCount > sentBefore) setBelow(null);
  }
  useLayoutEffect(() => {
    const box = scroller.current;
    if (sentCount === 0 || !box) return;
    following.current = true;
    box.scrollTop = box.scrollHeight;
  }, [sentCount]);

  const lastTop = useRef(0);
  const scrolled = () => {
    const box = scroller.current;
    if (!box) return;
    const distance = box.scrollHeight - box.scrollTop - box.clientHeight;
    const movedUp = box.scrollTop < lastTop.current - 1;
    lastTop.current = box.scrollTop;
    if (distance <= (movedUp ? 2 : FOLLOW_WITHIN)) {
      if (!following.current) setBelow(null);
      following.current = true;
      seenMessages.current = count;
    } else if (following.current && movedUp) {
      following.current = false;
      seenMessages.current = count;
      setBelow(0);
    }
    if (box.scrollTop < LOAD_EARLIER_WITHIN && state.hasEarlier) void thread.loadEarlier();
  };

  // Any move upwards stops the following at once, before the next token arrives.
  const leave = (up: boolean) => {
    const box = scroller.current;
    if (!up || !box || !following.current || box.scrollHeight <= box.clientHeight) return;
    following.current = false;
    seenMessages.current = count;
    setBelow(0);
  };

  return (
    <div className="thread">
      <div
        className="thread-scroll"
        ref={scroller}
        onScroll={scrolled}
        onWheel={(event) => leave(event.deltaY < 0)}
        onKeyDown={(event) =>
          leave(["ArrowUp", "PageUp", "Home"].includes(event.key) && event.target === scroller.current)
        }
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label={t("thread.label")}
      >
        <div className="thread-inner" ref={inner}>
          {(state.hasEarlier || loadingEarlier) && (
            <div className="earlier">
              {loadingEarlier ? (
                <Spinner />
              ) : (
                <button type="button" className="text-button" onClick={() => void thread.loadEarlier()}>
                  {t("thread.load_earlier")}
                </button>
              )}
            </div>
          )}
          <Virtualizer
            ref={list}
            scrollRef={scroller}
            shift={edge.grewInFront}
            startMargin={state.hasEarlier ? 44 : 0}
            bufferSize={600}
          >
            {rows.map((row) => (
              <div key={row.key} className={`row row-${row.kind} ${row.key === found ? "row-found" : ""}`}>
                <MessageRow row={row} waitingFor={state.approval?.tool_call_id ?? null} onFork={onFork} />
              </div>
            ))}
          </Virtualizer>
        </div>
      </div>
      {below !== null && (
        <button type="button" className="below-pill floating" onClick={toEnd}>
          <Icon name="down" />
          {below > 0 ? plural("thread.below.one", "thread.below.other", below) : t("thread.below.none")}
        </button>
      )}
    </div>
  );
}

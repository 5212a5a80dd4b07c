/** One open conversation: loads it, follows its turns, sends, stops and decides. */

import type { Approval, Conversation, TurnEvent } from "../api/contract";
import { conversations, PAGE_OF_MESSAGES, turns, type ConversationPatch } from "../api/crew";
import { ApiError } from "../api/http";
import { readEvents } from "../api/sse";
import { requestId } from "../format/id";
import { Store } from "../state/store";
import type { Decision, StopOutcome } from "./outcomes";
import {
  earlierLoaded,
  EMPTY_THREAD,
  happened,
  loaded,
  replaying,
  resumed,
  sending,
  unsent,
  type ThreadState,
} from "./thread-state";

/** How the page stands to the server for this conversation. */
export type Link = "loading" | "ok" | "lost" | "missing";

const BACKOFF_MS = [400, 1000, 2000, 4000, 8000];
const STOP_PATIENCE_MS = 3000;
/** While an old message is looked for, pages are as large as the server gives them. */
const REVEAL_PAGE = 500;
/** A tab that stays hidden this long gives its stream back: browsers grant six connections in all. */
const HIDDEN_GRACE_MS = 5000;

type Listener = (event: TurnEvent) => void;

interface Reading {
  /** It is the running turn's stream; else one beside it. */
  main: boolean;
  /** Of the send whose stream this is, or empty. */
  key: string;
}

export class Thread {
  readonly state = new Store<ThreadState>(EMPTY_THREAD);
  readonly link = new Store<Link>("loading");
  readonly decision = new Store<Decision | null>(null);
  readonly loadingEarlier = new Store(false);
  /** The id of the message to bring into view, until that was done. */
  readonly wanted = new Store<number | null>(null);
  /** Why the last send was refused; its words are back in the composer. */
  readonly refusal = new Store<ApiError | null>(null);

  #stream: AbortController | null = null;
  /** A message or decision that the server has not answered yet: leaving the page must not take it back. */
  #unanswered: AbortController | null = null;
  #closed = false;
  #opened: Promise<void> = Promise.resolve();
  #attempt = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #hiddenTimer: ReturnType<typeof setTimeout> | undefined;
  #waiting: TurnEvent[] = [];
  #frame = 0;
  readonly #listeners = new Set<Listener>();
  readonly #untold: TurnEvent[] = [];

  constructor(readonly id: string) {}

  /** Begin with what opening the conversation answered. */
  seed(conversation: Conversation): void {
    this.state.update((state) => loaded(state, conversation));
    this.link.set("ok");
  }

  /** Load the conversation and follow a turn that runs. Call `close` when the page leaves it. */
  open(): void {
    this.#closed = false;
    document.addEventListener("visibilitychange", this.#visibility);
    addEventListener("online", this.refresh);
    this.#opened = this.reload();
  }

  close(): void {
    this.#closed = true;
    document.removeEventListener("visibilitychange", this.#visibility);
    removeEventListener("online", this.refresh);
    clearTimeout(this.#retry);
    clearTimeout(this.#hiddenTimer);
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#waiting = [];
    this.#cut();
  }

  /** Hear every event as it is applied, for announcements. */
  onEvent(listener: Listener): () => void {
    this.#listeners.add(listener);
    this.#untold.splice(0).forEach(listener);
    return () => this.#listeners.delete(listener);
  }

  get streaming(): boolean {
    return this.#stream !== null;
  }

  /** Look again now: something changed elsewhere, or the network came back. */
  refresh = (): void => {
    clearTimeout(this.#retry);
    this.#attempt = 0;
    if (!this.streaming) void this.reload();
  };

  /** The activity stream told of a run of this conversation: what this tab streams itself it knows already. */
  heardOfRun(status: string): void {
    if (this.streaming || document.visibilityState !== "visible") return;
    const { running } = this.state.get();
    if (!running || status !== "running") this.refresh();
  }

  /** Fetch the stored conversation and join a running turn. */
  async reload(): Promise<void> {
    let conversation: Conversation;
    try {
      conversation = await conversations.get(this.id);
    } catch (cause) {
      if (!this.#closed) this.#lost(cause);
      return;
    }
    if (this.#closed) return;
    this.link.set("ok");
    if (!conversation.running) this.#attempt = 0;
    // A stream that began meanwhile knows more than this answer.
    if (this.streaming) return;
    this.state.update((state) => loaded(state, conversation));
    this.#settleDecision();
    if (conversation.running && document.visibilityState === "visible") this.#watch();
  }

  /** Load older pages until the message is there, and ask for it to be shown. */
  async reveal(messageId: number): Promise<void> {
    this.wanted.set(messageId);
    await this.#opened;
    while (!this.#closed && this.wanted.get() === messageId) {
      const { hasEarlier, messages } = this.state.get();
      if (messages.some(({ id }) => id === messageId)) return;
      const first = messages[0]?.seq;
      if (hasEarlier) await this.loadEarlier(REVEAL_PAGE);
      // Deleted, or the page did not come: the conversation stands as it is.
      if (this.state.get().messages[0]?.seq === first) this.wanted.set(null);
    }
  }

  async loadEarlier(limit = PAGE_OF_MESSAGES): Promise<void> {
    const { hasEarlier, messages } = this.state.get();
    const first = messages[0];
    if (!hasEarlier || !first || this.loadingEarlier.get()) return;
    this.loadingEarlier.set(true);
    try {
      const page = await conversations.get(this.id, first.seq, limit);
      if (!this.#closed) this.state.update((state) => earlierLoaded(state, page));
    } catch (cause) {
      if (!this.#closed && !(cause instanceof ApiError)) throw cause;
    } finally {
      this.loadingEarlier.set(false);
    }
  }

  /** Send a message; whether the server took it. When not, `refusal` says why. */
  async send(text: string): Promise<boolean> {
    this.refusal.set(null);
    const key = requestId();
    const busy = this.streaming;
    const abort = new AbortController();
    // Beside a running turn this stream carries one `queued` event; the turn's own stays the main one.
    if (!busy) this.#stream = this.#unanswered = abort;
    this.state.update((state) => sending(state, key, text, new Date().toISOString()));
    let response: Response;
    try {
      response = await this.#sendOnceMore(text, key, abort.signal);
    } catch (cause) {
      this.state.update((state) => unsent(state, key));
      this.#release(abort);
      if (!(cause instanceof ApiError)) throw cause;
      this.refusal.set(cause);
      if (cause.status === 409) this.refresh();
      return false;
    }
    this.#answered(response, abort, { main: !busy, key });
    return true;
  }

  /** The same name twice is one message, so a lost answer may be asked for again (GTW-078). */
  async #sendOnceMore(text: string, key: string, signal: AbortSignal): Promise<Response> {
    try {
      return await turns.send(this.id, text, key, signal);
    } catch (cause) {
      if (!(cause instanceof ApiError) || cause.status !== 0 || !navigator.onLine) throw cause;
      await new Promise((resolve) => setTimeout(resolve, 600));
      return turns.send(this.id, text, key, signal);
    }
  }

  /** Stop on the server first, then cut the stream (TRN-096). */
  async stop(): Promise<StopOutcome> {
    const saw = this.state.get().running || this.streaming;
    const outcome: StopOutcome = { cleared: [], nothingStopped: false, error: null };
    try {
      const reply = await turns.stop(this.id, AbortSignal.timeout(STOP_PATIENCE_MS));
      outcome.cleared = reply.cleared;
      outcome.nothingStopped = saw && !reply.cancelled && reply.cleared.length === 0;
    } catch (cause) {
      outcome.error = cause instanceof ApiError ? cause : new ApiError(0, "", String(cause));
    }
    this.#cut();
    await this.reload();
    return outcome;
  }

  /** Approve or deny; one press is one decision (FLD-029). */
  decide(approval: Approval, approve: boolean, always = false): Promise<void> {
    return this.#close(approval, (signal) => turns.decide(approval, approve, always, signal));
  }

  answer(approval: Approval, text: string): Promise<void> {
    return this.#close(approval, (signal) => turns.answer(approval, text, signal));
  }

  async #close(approval: Approval, ask: (signal: AbortSignal) => Promise<Response>): Promise<void> {
    const was = this.decision.get();
    if (was?.approvalId === approval.id && was.busy) return;
    this.decision.set({ approvalId: approval.id, busy: true, problem: null });
    const abort = new AbortController();
    this.#cut();
    this.#stream = this.#unanswered = abort;
    try {
      const response = await ask(abort.signal);
      this.decision.set(null);
      this.state.update(resumed);
      this.#answered(response, abort, { main: true, key: "" });
    } catch (cause) {
      this.#release(abort);
      if (!(cause instanceof ApiError)) throw cause;
      const handled = cause.status === 409;
      this.decision.set({ approvalId: approval.id, busy: false, problem: handled ? "handled" : cause });
      if (handled) await this.reload();
    }
  }

  async change(patch: ConversationPatch): Promise<void> {
    const conversation = await conversations.update(this.id, patch);
    if (this.#closed) return;
    this.state.update((state) => ({
      ...state,
      conversation: { ...(state.conversation ?? conversation), ...conversation },
    }));
  }

  #watch(): void {
    const abort = new AbortController();
    this.#stream = abort;
    turns
      .watch(this.id, "", abort.signal)
      .then((response) => {
        if (response.status === 204) {
          this.#stream = null;
          // The turn ended between the two questions.
          this.#again();
          return;
        }
        this.state.update(replaying);
        void this.#read(response, abort, { main: true, key: "" });
      })
      .catch((cause: unknown) => {
        this.#release(abort);
        if (!abort.signal.aborted) this.#lost(cause);
      });
  }

  /** Read what the server answers, unless the page was left or the turn stopped meanwhile. */
  #answered(response: Response, abort: AbortController, reading: Reading): void {
    if (this.#unanswered === abort) this.#unanswered = null;
    if (!this.#closed && (!reading.main || this.#stream === abort)) {
      void this.#read(response, abort, reading);
      return;
    }
    abort.abort();
    if (!this.#closed) this.refresh();
  }

  async #read(
    response: Response,
    abort: AbortController,
    { main: begunAsMain, key }: Reading,
  ): Promise<void> {
    let main = begunAsMain;
    let broke: unknown = null;
    try {
      await readEvents<TurnEvent>(
        response,
        (events) => {
          if (this.#closed || (main && this.#stream !== abort)) return;
          if (!main && events.some(({ event }) => event.type !== "queued")) {
            // The turn it was to wait for had just ended: this is the next one.
            main = true;
            this.#cut();
            this.#stream = abort;
          }
          this.#attempt = 0;
          this.#take(
            events.map(({ event }) => event),
            key,
          );
        },
        abort,
      );
    } catch (cause) {
      broke = cause;
    }
    if (this.#closed || (main && this.#stream !== abort)) return;
    this.#flush(key);
    if (!main) {
      if (broke) this.refresh();
      return;
    }
    this.#stream = null;
    if (broke instanceof ApiError) this.#lost(broke);
    else this.#again();
  }

  /** Draw what came since the last frame at once: a burst of tokens is one change. */
  #take(events: TurnEvent[], key: string): void {
    this.#waiting.push(...events);
    if (key && events.some((event) => event.type === "queued")) {
      this.#flush(key);
      return;
    }
    this.#frame ||= requestAnimationFrame(() => this.#flush(key));
  }

  #flush(key: string): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const events = this.#waiting;
    this.#waiting = [];
    if (events.length === 0) return;
    this.state.update((state) => happened(state, events, Date.now(), key));
    // A first message's turn may begin before its page stands.
    if (this.#listeners.size === 0) this.#untold.push(...events);
    for (const event of events) this.#listeners.forEach((listener) => listener(event));
  }

  #again(): void {
    clearTimeout(this.#retry);
    const delay = BACKOFF_MS[Math.min(this.#attempt, BACKOFF_MS.length - 1)] ?? 0;
    if (this.#attempt++ === 0) void this.reload();
    else this.#retry = setTimeout(() => void this.reload(), delay);
  }

  #lost(cause: unknown): void {
    if (cause instanceof ApiError && cause.status === 404) {
      this.link.set("missing");
      return;
    }
    if (cause instanceof ApiError && cause.status === 401) return;
    this.link.set("lost");
    const delay = BACKOFF_MS[Math.min(this.#attempt++, BACKOFF_MS.length - 1)] ?? 8000;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.reload(), delay);
  }

  #release(abort: AbortController): void {
    if (this.#stream === abort) this.#stream = null;
    if (this.#unanswered === abort) this.#unanswered = null;
  }

  #cut(): void {
    if (this.#stream !== this.#unanswered) this.#stream?.abort();
    this.#stream = null;
  }

  #settleDecision(): void {
    const decision = this.decision.get();
    if (decision && decision.approvalId !== this.state.get().approval?.id && !decision.busy) {
      // What was decided elsewhere is told once, by whoever shows the card.
      if (decision.problem !== "handled") this.decision.set(null);
    }
  }

  #visibility = (): void => {
    clearTimeout(this.#hiddenTimer);
    if (document.visibilityState === "visible") this.refresh();
    else this.#hiddenTimer = setTimeout(() => this.#cut(), HIDDEN_GRACE_MS);
  };
}

/**
 * One activity stream for all tabs of this browser.
 *
 * A browser gives one origin six connections over all tabs, so one tab holds the stream under a Web
 * Lock and tells the others over a BroadcastChannel. Where either is missing (plain http on another
 * machine) each visible tab holds a stream of its own.
 */

import type { ActivityFrame } from "../api/contract";
import { runs } from "../api/crew";
import { ApiError } from "../api/http";
import { readEvents } from "../api/sse";

export type ChannelState = "connecting" | "live" | "lost";

type Post =
  | { kind: "frames"; frames: ActivityFrame[] }
  | { kind: "state"; state: ChannelState }
  | { kind: "hello" }
  | { kind: "ping" };

export interface ChannelEvents {
  onFrames(frames: ActivityFrame[]): void;
  onState(state: ChannelState): void;
  /** What a tab that joins has to be told first. */
  snapshot(): ActivityFrame;
}

const NAME = "crew-activity";
const BACKOFF_MS = [500, 1000, 2000, 4000, 8000];
const PING_EVERY_MS = 20_000;
/** A leader that does not answer within this was frozen by the browser: the lock is taken from it. */
const PATIENCE_MS = 900;

export class ActivityChannel {
  readonly #events: ChannelEvents;
  #post: BroadcastChannel | null = null;
  #leading = false;
  #stream: AbortController | null = null;
  #attempt = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #ping: ReturnType<typeof setInterval> | undefined;
  #patience: ReturnType<typeof setTimeout> | undefined;
  #state: ChannelState = "connecting";
  #stopped = false;
  #giveUpLock: (() => void) | null = null;

  constructor(events: ChannelEvents) {
    this.#events = events;
  }

  start(): void {
    document.addEventListener("visibilitychange", this.#visible);
    addEventListener("online", this.#visible);
    if (!("locks" in navigator) || typeof BroadcastChannel === "undefined") {
      this.#lead();
      return;
    }
    this.#post = new BroadcastChannel(NAME);
    this.#post.onmessage = (message: MessageEvent<Post>) => this.#hear(message.data);
    this.#queueForLock(false);
    this.#post.postMessage({ kind: "hello" } satisfies Post);
    this.#ping = setInterval(() => this.#check(), PING_EVERY_MS);
  }

  stop(): void {
    this.#stopped = true;
    document.removeEventListener("visibilitychange", this.#visible);
    removeEventListener("online", this.#visible);
    clearInterval(this.#ping);
    clearTimeout(this.#patience);
    this.#unlead();
    this.#giveUpLock?.();
    this.#post?.close();
  }

  /** Try again now instead of at the next planned time. */
  retry(): void {
    if (this.#leading) {
      this.#attempt = 0;
      clearTimeout(this.#retry);
      if (!this.#stream) this.#connect();
    } else {
      this.#check();
    }
  }

  #queueForLock(steal: boolean): void {
    const hold = () =>
      new Promise<void>((resolve) => {
        if (this.#stopped) {
          resolve();
          return;
        }
        this.#giveUpLock = resolve;
        this.#lead();
      });
    navigator.locks
      .request(NAME, steal ? { steal: true } : {}, hold)
      .then(() => this.#unlead())
      .catch(() => {
        // Another tab took the lock: wait in line again.
        this.#unlead();
        if (!this.#stopped) this.#queueForLock(false);
      });
  }

  #lead(): void {
    this.#leading = true;
    this.#connect();
  }

  #unlead(): void {
    this.#leading = false;
    clearTimeout(this.#retry);
    this.#stream?.abort();
    this.#stream = null;
  }

  #connect(): void {
    const abort = new AbortController();
    this.#stream = abort;
    void (async () => {
      try {
        const response = await runs.stream(abort.signal);
        this.#tellState("live");
        await readEvents<ActivityFrame>(
          response,
          (events) => {
            this.#attempt = 0;
            this.#tell(events.map(({ event }) => event));
          },
          abort,
        );
      } catch (cause) {
        if (abort.signal.aborted && !(cause instanceof ApiError)) return;
      }
      if (this.#stream !== abort || !this.#leading) return;
      this.#stream = null;
      this.#tellState("lost");
      const delay = BACKOFF_MS[Math.min(this.#attempt++, BACKOFF_MS.length - 1)];
      this.#retry = setTimeout(() => this.#connect(), delay);
    })();
  }

  #tell(frames: ActivityFrame[]): void {
    this.#events.onFrames(frames);
    this.#post?.postMessage({ kind: "frames", frames } satisfies Post);
  }

  #tellState(state: ChannelState): void {
    this.#state = state;
    this.#events.onState(state);
    this.#post?.postMessage({ kind: "state", state } satisfies Post);
  }

  #hear(post: Post): void {
    clearTimeout(this.#patience);
    switch (post.kind) {
      case "frames":
        if (!this.#leading) this.#events.onFrames(post.frames);
        return;
      case "state":
        if (!this.#leading) this.#events.onState(post.state);
        return;
      case "hello":
        if (!this.#leading) return;
        this.#post?.postMessage({ kind: "frames", frames: [this.#events.snapshot()] } satisfies Post);
        this.#post?.postMessage({ kind: "state", state: this.#state } satisfies Post);
        return;
      case "ping":
        if (this.#leading) this.#post?.postMessage({ kind: "state", state: this.#state } satisfies Post);
    }
  }

  #check(): void {
    if (this.#leading || document.visibilityState !== "visible") return;
    clearTimeout(this.#patience);
    this.#patience = setTimeout(() => this.#queueForLock(true), PATIENCE_MS);
    this.#post?.postMessage({ kind: "ping" } satisfies Post);
  }

  #visible = (): void => {
    if (document.visibilityState !== "visible") {
      if (!this.#post) this.#unlead();
      return;
    }
    if (!this.#post && !this.#leading) this.#lead();
    else this.retry();
  };
}

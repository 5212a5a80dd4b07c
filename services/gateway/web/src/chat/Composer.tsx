import {
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type KeyboardEvent,
  type Ref,
  useImperativeHandle,
} from "react";
import { Icon, Spinner } from "../design/Icon";
import { useText, type Key } from "../i18n";
import { useTouch } from "../state/media";
import { draftOf, keepDraft } from "./drafts";
import { enterMeans } from "./enter-key";

export interface ComposerHandle {
  focus(): void;
  /** Put words before what is typed already, one empty line between. */
  putBack(text: string): void;
  fill(text: string): void;
}

interface Props {
  ref?: Ref<ComposerHandle>;
  /** Whose draft it is; "new" before there is a conversation. */
  draftId: string;
  agent: string;
  /** A turn runs: what is sent waits, or joins it. */
  busy: boolean;
  /** Why nothing can be sent now, as a sentence, or null. */
  locked: string | null;
  stopping: boolean;
  onSend: (text: string) => Promise<boolean>;
  onStop: () => void;
  /** The person's last message, for the arrow up. */
  lastOwn?: () => string | null;
}

type SendKind = "send" | "queue" | "steer";
const SEND_WORDS: Record<SendKind, Key> = {
  send: "composer.send",
  queue: "composer.queue",
  steer: "composer.steer",
};
const MAX_LINES_PX = 232;

export function Composer(props: Props) {
  const { draftId, agent, busy, locked, stopping, onSend, onStop, lastOwn, ref } = props;
  const t = useText();
  const touch = useTouch();
  const [text, setText] = useState(() => draftOf(draftId));
  const [taking, setTaking] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const justComposed = useRef(false);

  const change = (next: string) => {
    setText(next);
    keepDraft(draftId, next);
  };

  useImperativeHandle(ref, () => ({
    focus: () => box.current?.focus(),
    fill: (words) => {
      change(words);
      box.current?.focus();
    },
    putBack: (words) => {
      const typed = draftOf(draftId);
      change(typed ? `${words}\n\n${typed}` : words);
    },
  }));

  useLayoutEffect(() => {
    const area = box.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, MAX_LINES_PX)}px`;
  }, [text]);

  useEffect(() => {
    if (!touch) box.current?.focus({ preventScroll: true });
  }, [draftId, touch]);

  const kind: SendKind = !busy ? "send" : /^\/steer\s/.test(text) ? "steer" : "queue";
  const ready = text.trim() !== "" && locked === null && !taking;

  const send = async () => {
    if (!ready) return;
    const words = text;
    // Cleared at once, so that the next words can be typed; given back when refused.
    change("");
    setTaking(true);
    const taken = await onSend(words.trim());
    setTaking(false);
    if (!taken) {
      const typed = draftOf(draftId);
      change(typed ? `${words}\n\n${typed}` : words);
    }
    box.current?.focus({ preventScroll: true });
  };

  const pressed = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key === "ArrowUp" && text === "") {
      const last = lastOwn?.();
      if (last) {
        event.preventDefault();
        change(last);
      }
      return;
    }
    const means = enterMeans(
      { ...pick(event), isComposing: event.nativeEvent.isComposing },
      { justComposed: justComposed.current, touch },
    );
    if (means !== "send") return;
    event.preventDefault();
    void send();
  };

  return (
    <form
      className={locked === null ? "composer" : "composer composer-locked"}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <textarea
        ref={box}
        className="composer-text"
        rows={1}
        value={text}
        placeholder={locked ?? t("composer.placeholder", { agent })}
        aria-label={t("composer.placeholder", { agent })}
        disabled={locked !== null}
        enterKeyHint={touch ? "enter" : "send"}
        onChange={(event) => change(event.target.value)}
        onKeyDown={pressed}
        onCompositionEnd={() => {
          justComposed.current = true;
          setTimeout(() => {
            justComposed.current = false;
          }, 0);
        }}
      />
      <div className="composer-actions">
        {busy && (
          <button type="button" className="stop-button" onClick={onStop} disabled={stopping}>
            {stopping ? <Spinner /> : <Icon name="stop" />}
            <span>{t("composer.stop")}</span>
          </button>
        )}
        <button
          type="submit"
          className={kind === "send" ? "send-button" : "send-button send-button-worded"}
          disabled={!ready}
          aria-label={t(SEND_WORDS[kind])}
          title={t(SEND_WORDS[kind])}
        >
          {taking ? <Spinner /> : <Icon name="up" />}
          {kind !== "send" && <span>{t(SEND_WORDS[kind])}</span>}
        </button>
      </div>
    </form>
  );
}

function pick({ key, keyCode, shiftKey, ctrlKey, metaKey, altKey }: KeyboardEvent) {
  return { key, keyCode, shiftKey, ctrlKey, metaKey, altKey };
}

import { useRef, useState } from "react";
import { conversations } from "../api/crew";
import { ApiError } from "../api/http";
import { Button, IconButton } from "../design/Button";
import { Mark } from "../design/Icon";
import { Problem } from "../design/Problem";
import { useText } from "../i18n";
import { agents, refreshConversations } from "../state/crew";
import { usePhone } from "../state/media";
import { go, route } from "../state/route";
import { useStore } from "../state/store";
import { Composer, type ComposerHandle } from "./Composer";
import { keepDraft } from "./drafts";
import { Thread } from "./thread";
import { threadOf } from "./threads";

/** Whoever opened something else while an answer was on its way stays there (GTW-239). */
const isHere = () => route.get().page === "start";

/** Before there is a conversation: it is opened by the first message, not by a press. */
export function StartPage({ onMenu }: { onMenu: () => void }) {
  const t = useText();
  const phone = usePhone();
  const composer = useRef<ComposerHandle>(null);
  const master = useStore(agents).find((agent) => agent.master);
  const [error, setError] = useState<ApiError | null>(null);

  const send = async (words: string): Promise<boolean> => {
    setError(null);
    try {
      const conversation = await conversations.create();
      const thread = isHere() ? threadOf(conversation.id) : new Thread(conversation.id);
      thread.seed(conversation);
      if (!(await thread.send(words))) keepDraft(conversation.id, words);
      void refreshConversations();
      if (isHere()) go({ page: "conversation", id: conversation.id });
      else thread.close();
      return true;
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setError(cause);
      return false;
    }
  };

  return (
    <main className="start">
      {phone && (
        <header className="page-head">
          <IconButton icon="menu" label={t("rail.open")} onClick={onMenu} />
          <h1 className="page-title">{t("rail.new")}</h1>
        </header>
      )}
      <div className="start-middle">
        <Mark size={44} />
        <h1 className="start-title">{t("start.title")}</h1>
        <p className="start-hint">{t("start.hint")}</p>
        <Button icon="spark" onClick={() => composer.current?.fill(t("start.example"))}>
          {t("start.example")}
        </Button>
      </div>
      <div className="foot">
        {error && <Problem error={error} kept={t("composer.kept")} />}
        <Composer
          ref={composer}
          draftId="new"
          agent={master?.name || master?.id || t("start.agent")}
          busy={false}
          locked={null}
          stopping={false}
          onSend={send}
          onStop={() => undefined}
        />
        <p className="status-slot">
          <span className="status-hint">{t("composer.hint")}</span>
        </p>
      </div>
    </main>
  );
}

import { useState } from "react";
import type { Conversation } from "../api/contract";
import type { ConversationPatch } from "../api/crew";
import { conversations } from "../api/crew";
import { ApiError } from "../api/http";
import { Button } from "../design/Button";
import { Card } from "../design/Card";
import { Icon } from "../design/Icon";
import { useSentence } from "../design/Problem";
import { Switch } from "../design/Switch";
import { useText } from "../i18n";
import { agentName, refreshConversations } from "../state/crew";
import { go } from "../state/route";
import { exportConversation } from "./export";
import type { Thread } from "./thread";

/** Autonomy, what is always allowed, name, export and removal of one conversation (GTW-218). */
export function OptionsCard({ thread, conversation }: { thread: Thread; conversation: Conversation }) {
  const t = useText();
  return (
    <Card
      label={t("options.title")}
      pill={
        <>
          <Icon name="sliders" />
          {conversation.autonomous && <span className="pill-word">{t("options.autonomous_short")}</span>}
        </>
      }
    >
      <OptionsBody thread={thread} conversation={conversation} />
    </Card>
  );
}

function OptionsBody({ thread, conversation }: { thread: Thread; conversation: Conversation }) {
  const t = useText();
  const sentence = useSentence();
  const [error, setError] = useState<string | null>(null);
  const [title, setTitle] = useState(conversation.title);
  const [asking, setAsking] = useState(false);

  const attempt = async (work: () => Promise<void>) => {
    setError(null);
    try {
      await work();
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setError(sentence(cause));
    }
  };
  const change = (patch: ConversationPatch) => attempt(() => thread.change(patch));
  const uses = new Map(conversation.grants.map((grant) => [grant.allows, grant.uses]));
  const name = conversation.title || t("conversation.untitled");

  return (
    <div className="options">
      <h2>{t("options.title")}</h2>
      <label className="options-title">
        <span className="muted">{t("options.name")}</span>
        <input
          className="field"
          value={title}
          maxLength={200}
          onChange={(event) => setTitle(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.nativeEvent.isComposing) event.currentTarget.blur();
          }}
          onBlur={() => {
            if (title.trim() && title.trim() !== conversation.title) void change({ title: title.trim() });
          }}
        />
      </label>
      <Switch
        on={conversation.autonomous}
        label={t("options.autonomous")}
        hint={t("options.autonomous_hint")}
        onChange={(autonomous) => void change({ autonomous })}
      />
      <div className="options-grants">
        <h3>{t("options.allowed")}</h3>
        {conversation.auto_approve.length === 0 ? (
          <p className="muted small">{t("options.allowed_none")}</p>
        ) : (
          <ul>
            {conversation.auto_approve.map((grant) => (
              <li key={grant}>
                <code>{grant}</code>
                <span className="muted small">{t("options.used", { times: uses.get(grant) ?? 0 })}</span>
                <button
                  type="button"
                  className="text-button"
                  aria-label={t("options.revoke_named", { grant })}
                  onClick={() =>
                    void change({
                      auto_approve: conversation.auto_approve.filter((other) => other !== grant),
                    })
                  }
                >
                  {t("options.revoke")}
                </button>
              </li>
            ))}
          </ul>
        )}
      </div>
      <div className="options-foot">
        <Button
          look="quiet"
          icon="download"
          onClick={() =>
            void attempt(() =>
              exportConversation(conversation.id, name, {
                you: t("export.you"),
                agent: agentName(conversation.agent_id),
              }),
            )
          }
        >
          {t("options.export")}
        </Button>
        {asking ? (
          <Button
            look="danger"
            icon="trash"
            onClick={() =>
              void attempt(async () => {
                await conversations.remove(conversation.id);
                go({ page: "start" });
                await refreshConversations();
              })
            }
          >
            {t("options.delete_sure")}
          </Button>
        ) : (
          <Button look="quiet" icon="trash" onClick={() => setAsking(true)}>
            {t("options.delete")}
          </Button>
        )}
      </div>
      {error && (
        <p className="form-error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

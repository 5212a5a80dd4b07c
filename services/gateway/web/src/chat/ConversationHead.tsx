import type { Conversation } from "../api/contract";
import { IconButton } from "../design/Button";
import { useText } from "../i18n";
import { conversationList } from "../state/crew";
import { usePhone } from "../state/media";
import { hrefOf } from "../state/route";
import { useStore } from "../state/store";
import { CrewCard } from "./CrewCard";
import { OptionsCard } from "./OptionsCard";
import { SpendCard } from "./SpendCard";
import type { Thread } from "./thread";

interface Props {
  thread: Thread;
  conversation: Conversation | null;
  onMenu: () => void;
}

/** Title, where it branched from, and the pills (GTW-216). */
export function ConversationHead({ thread, conversation, onMenu }: Props) {
  const t = useText();
  const phone = usePhone();
  const listed = useStore(conversationList)?.find(({ id }) => id === thread.id);
  return (
    <header className="page-head">
      {phone && <IconButton icon="menu" label={t("rail.open")} onClick={onMenu} />}
      <div className="page-name">
        <h1 className="page-title">{listed?.title || conversation?.title || t("conversation.untitled")}</h1>
        {conversation?.forked_from && <ForkedFrom id={conversation.forked_from} />}
      </div>
      {conversation && (
        <div className="page-pills">
          <SpendCard thread={thread} conversation={conversation} />
          <OptionsCard key={conversation.title} thread={thread} conversation={conversation} />
          <CrewCard />
        </div>
      )}
    </header>
  );
}

function ForkedFrom({ id }: { id: string }) {
  const t = useText();
  const source = useStore(conversationList)?.find((conversation) => conversation.id === id);
  return (
    <a className="page-origin" href={hrefOf({ page: "conversation", id })}>
      {t("fork.from", { title: source?.title || t("fork.from_unknown") })}
    </a>
  );
}

import type { Approval } from "../api/contract";
import { useText } from "../i18n";
import { conversationList, agentName } from "../state/crew";
import { hrefOf } from "../state/route";
import { useStore } from "../state/store";

/** Who asks, and in which conversation (FLD-028). */
export function Asker({ approval, link }: { approval: Approval; link: boolean }) {
  const t = useText();
  const conversation = useStore(conversationList)?.find(({ id }) => id === approval.conversation_id);
  const title = conversation?.title || t("conversation.untitled");
  return (
    <span className="asker">
      <span>{agentName(approval.agent_id)}</span>
      {conversation && conversation.channel !== "web" && <span>{conversation.channel}</span>}
      {link ? (
        <a href={hrefOf({ page: "conversation", id: approval.conversation_id })}>{title}</a>
      ) : (
        <span>{title}</span>
      )}
    </span>
  );
}

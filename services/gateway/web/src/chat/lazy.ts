import { lazy } from "react";

/** The thread with its Markdown comes in a file of its own: the frame is painted before it (FLD-075). */
export const loadConversationPage = () => import("./ConversationPage");

export const ConversationPage = lazy(async () => ({
  default: (await loadConversationPage()).ConversationPage,
}));

import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { loadConversationPage } from "./chat/lazy";
import { loadSections } from "./manage/lazy";
import { App } from "./shell/App";
import { parseRoute } from "./state/route";
import "./styles/index.css";

/** Fetch a part ahead of its use. One that does not come is told of where it is needed. */
function ahead(load: () => Promise<unknown>): void {
  load().catch(() => undefined);
}

// What the address needs is fetched beside the first questions to the server, not after them.
const { page } = parseRoute(location.hash);
if (page === "conversation") ahead(loadConversationPage);
if (page === "manage") ahead(loadSections);

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}

// The rest comes while nothing else is to be done, so that it is there when it is wanted.
addEventListener("load", () => {
  const whenIdle = window.requestIdleCallback ?? ((work: () => void) => setTimeout(work, 1500));
  whenIdle(() => {
    ahead(loadConversationPage);
    ahead(loadSections);
  });
});

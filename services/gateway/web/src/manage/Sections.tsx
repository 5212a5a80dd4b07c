import type { Section } from "../state/route";
import { ActivitySection } from "./ActivitySection";
import { ApprovalsSection } from "./ApprovalsSection";
import { AuditSection } from "./audit/AuditSection";
import { ConnectionsSection } from "./ConnectionsSection";
import { CostsSection } from "./costs/CostsSection";
import { AgentPage } from "./crew/AgentPage";
import { CrewSection } from "./crew/CrewSection";
import { RunPage } from "./RunPage";
import { SettingsSection } from "./SettingsSection";
import { ToolsSection } from "./tools/ToolsSection";

/** What stands at an address of the manage screen. */
export function Sections({ section, item }: { section: Section; item: string | null }) {
  switch (section) {
    case "activity":
      return item ? <RunPage id={item} /> : <ActivitySection />;
    case "approvals":
      return <ApprovalsSection />;
    case "costs":
      return <CostsSection />;
    case "audit":
      return <AuditSection />;
    case "crew":
      return item ? <AgentPage id={item} /> : <CrewSection />;
    case "tools":
      return <ToolsSection item={item} />;
    case "connections":
      return <ConnectionsSection />;
    case "settings":
      return <SettingsSection />;
  }
}

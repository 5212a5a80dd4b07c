import { Suspense, useEffect, useState } from "react";
import { AccessGate } from "../access/AccessGate";
import { ConversationPage } from "../chat/lazy";
import { ThreadSkeleton } from "../chat/ThreadSkeleton";
import { StartPage } from "../chat/StartPage";
import { ManagePage } from "../manage/ManagePage";
import { followCrew } from "../state/crew";
import { useNarrowRail, usePhone } from "../state/media";
import { followNotifications } from "../state/notifications";
import { followHash, route } from "../state/route";
import { useStore } from "../state/store";
import { Bars } from "./Bars";
import { Boundary } from "./Boundary";
import { LiveRegions } from "./LiveRegions";
import { NoticeBar } from "./NoticeBar";
import { Rail, RailDrawer } from "./Rail";
import { ShortcutSheet } from "./ShortcutSheet";
import { useBadge } from "./badge";
import { useShortcuts } from "./shortcuts";
import { useViewportHeight } from "./viewport";

export function App() {
  useEffect(followHash, []);
  useViewportHeight();
  return (
    <>
      <AccessGate>
        <Crew />
      </AccessGate>
      <LiveRegions />
    </>
  );
}

function Crew() {
  useEffect(followCrew, []);
  useEffect(followNotifications, []);
  useBadge();
  const place = useStore(route);
  const phone = usePhone();
  const narrow = useNarrowRail();
  const [drawer, setDrawer] = useState(false);
  const [sheet, setSheet] = useState(false);
  // Whether the list of conversations stands beside the page.
  const drawn = !narrow && place.page !== "manage";
  useShortcuts({ openSheet: () => setSheet(true), openSearch: () => setDrawer(!drawn) });

  // A choice in the drawer leads elsewhere: it is done then.
  const [at, setAt] = useState(place);
  if (at !== place) {
    setAt(place);
    setDrawer(false);
  }
  const openDrawer = () => setDrawer(true);
  const key = place.page === "conversation" ? place.id : place.page;

  return (
    <div className="app">
      <Bars />
      <NoticeBar />
      <div className="columns">
        {!phone && place.page !== "manage" && <Rail onOpen={openDrawer} onHelp={() => setSheet(true)} />}
        <Boundary key={key}>
          {place.page === "conversation" && (
            <Suspense fallback={<ThreadSkeleton />}>
              <ConversationPage
                key={place.id}
                id={place.id}
                message={place.message ?? null}
                onMenu={openDrawer}
              />
            </Suspense>
          )}
          {place.page === "start" && <StartPage onMenu={openDrawer} />}
          {place.page === "manage" && <ManagePage section={place.section} item={place.item} />}
        </Boundary>
      </div>
      {!drawn && drawer && <RailDrawer onClose={() => setDrawer(false)} onHelp={() => setSheet(true)} />}
      {sheet && <ShortcutSheet onClose={() => setSheet(false)} />}
    </div>
  );
}

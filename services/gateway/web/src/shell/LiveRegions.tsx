import { polite, urgent } from "../state/announcer";
import { useStore } from "../state/store";

export function LiveRegions() {
  const calm = useStore(polite);
  const loud = useStore(urgent);
  return (
    <div className="visually-hidden">
      <div aria-live="polite" aria-atomic="true" data-live="polite">
        <span key={calm.turn}>{calm.text}</span>
      </div>
      <div aria-live="assertive" aria-atomic="true" data-live="assertive">
        <span key={loud.turn}>{loud.text}</span>
      </div>
    </div>
  );
}

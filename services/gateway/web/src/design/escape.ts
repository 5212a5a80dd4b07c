/** Escape closes what was opened last, one at a time. */

type Closer = () => void;

const open: Closer[] = [];

function pressed(event: KeyboardEvent): void {
  if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
  const closer = open.at(-1);
  if (!closer) return;
  event.preventDefault();
  closer();
}

/** Register what Escape closes; returns how to take it back. */
export function onEscape(close: Closer): () => void {
  if (open.length === 0) document.addEventListener("keydown", pressed);
  open.push(close);
  return () => {
    const at = open.lastIndexOf(close);
    if (at >= 0) open.splice(at, 1);
    if (open.length === 0) document.removeEventListener("keydown", pressed);
  };
}

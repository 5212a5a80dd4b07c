/** What Enter does in the composer (GTW-219, FLD-079). */

export interface Keystroke {
  key: string;
  keyCode: number;
  isComposing: boolean;
  shiftKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

export interface Situation {
  /** An input method ended in this very event turn. */
  justComposed: boolean;
  /** A touch keyboard: Enter adds a line, Ctrl+Enter and the button send. */
  touch: boolean;
}

/** "send", "line" for a line break, or "leave" when the key is not ours (an input method's, for one). */
export function enterMeans(event: Keystroke, { justComposed, touch }: Situation): "send" | "line" | "leave" {
  if (event.key !== "Enter") return "leave";
  // Safari reports the Enter that ends a composition after it, with the code of the input method.
  if (event.isComposing || event.keyCode === 229 || justComposed) return "leave";
  if (event.ctrlKey || event.metaKey) return "send";
  if (event.shiftKey || event.altKey || touch) return "line";
  return "send";
}

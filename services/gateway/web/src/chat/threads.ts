/** The thread in front: kept while its page stands, also from the send that opened it. */

import { Thread } from "./thread";

let current: Thread | null = null;

export function threadOf(id: string): Thread {
  if (current?.id !== id) current = new Thread(id);
  return current;
}

/** What came of a decision and of a stop, as the page tells it. */

import type { ApiError } from "../api/http";

export interface Decision {
  approvalId: string;
  busy: boolean;
  /** The server's sentence, "handled" when it was decided elsewhere first, or null. */
  problem: ApiError | "handled" | null;
}

export interface StopOutcome {
  cleared: string[];
  /** A turn was seen here, and the server says none was stopped (GTW-222). */
  nothingStopped: boolean;
  error: ApiError | null;
}

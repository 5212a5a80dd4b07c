/** Requests to the gateway's JSON API, and what a refusal looks like. */

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

/** A refusal or a failure of a request. `status` is 0 when nothing answered. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    /** The server's own sentence, in the person's language; empty when there was none. */
    readonly detail: string,
    /** For the "copy details" button: never shown as the only text. */
    readonly technical: string,
  ) {
    super(detail || technical);
    this.name = "ApiError";
  }
}

const unauthenticated = new Set<() => void>();

/** Call `listener` whenever the server says that the session is over. */
export function onUnauthenticated(listener: () => void): () => void {
  unauthenticated.add(listener);
  return () => unauthenticated.delete(listener);
}

export interface RequestOptions {
  method?: Method;
  body?: unknown;
  signal?: AbortSignal | undefined;
  headers?: Record<string, string>;
}

/** A response with a 2xx status, or an ApiError. */
export async function request(path: string, options: RequestOptions = {}): Promise<Response> {
  const { method = "GET", body, signal, headers = {} } = options;
  const init: RequestInit = {
    method,
    headers: { ...headers },
    cache: "no-store",
    credentials: "same-origin",
  };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    (init.headers as Record<string, string>)["Content-Type"] = "application/json";
  }
  if (signal) init.signal = signal;
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new ApiError(0, "", `${method} ${path}: ${String(cause)}`);
  }
  if (response.ok) return response;
  const error = new ApiError(
    response.status,
    await detailOf(response),
    `${method} ${path}: ${response.status}`,
  );
  if (response.status === 401 && !path.startsWith("/api/auth/")) unauthenticated.forEach((tell) => tell());
  throw error;
}

/** The JSON body of an answer; `undefined` for 204. */
export async function json<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await request(path, options);
  if (response.status === 204) return undefined as T;
  try {
    return (await response.json()) as T;
  } catch (cause) {
    throw new ApiError(response.status, "", `${path}: unreadable answer (${String(cause)})`);
  }
}

async function detailOf(response: Response): Promise<string> {
  try {
    const { detail } = (await response.json()) as { detail?: unknown };
    if (typeof detail === "string") return detail;
    if (detail && typeof detail === "object" && "message" in detail) return String(detail.message);
  } catch {
    // A proxy in between may answer with a page of its own.
  }
  return "";
}

/** A path with its parts encoded and its query, absent values left out. */
export function path(
  parts: readonly string[],
  query: Record<string, string | number | null | undefined> = {},
): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") search.set(key, String(value));
  }
  const text = search.toString();
  return `/api/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

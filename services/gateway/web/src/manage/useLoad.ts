import { useCallback, useEffect, useState } from "react";
import { ApiError } from "../api/http";

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  again: () => void;
}

/**
 * Ask once when shown, and again on demand. What was loaded stays while a new answer is fetched or
 * after one that failed. `load` must be stable between draws.
 */
export function useLoad<T>(load: () => Promise<T>): Loaded<T> {
  const [data, setData] = useState<T | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [turn, setTurn] = useState(0);

  useEffect(() => {
    let current = true;
    load()
      .then((answer) => {
        if (!current) return;
        setData(answer);
        setError(null);
      })
      .catch((cause: unknown) => {
        if (!(cause instanceof ApiError)) throw cause;
        if (current) setError(cause);
      });
    return () => {
      current = false;
    };
  }, [load, turn]);

  return { data, error, again: useCallback(() => setTurn((count) => count + 1), []) };
}

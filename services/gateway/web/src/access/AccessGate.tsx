/** Lets the page through when the server knows who is there; else asks for the password. */

import { useEffect, useState, type ReactNode } from "react";
import { auth, type Session } from "../api/crew";
import { ApiError, onUnauthenticated } from "../api/http";
import { Button } from "../design/Button";
import { Mark, Spinner } from "../design/Icon";
import { Problem } from "../design/Problem";
import { useText } from "../i18n";
import { Store, useStore } from "../state/store";
import { Login } from "./Login";
import { SetUp, setupTokenOf } from "./SetUp";

type Access = { kind: "asking" } | { kind: "in" } | { kind: "out" } | { kind: "failed"; error: ApiError };

export const session = new Store<Session | null>(null);

async function whoIsThere(): Promise<Access> {
  try {
    const answer = await auth.session();
    session.set(answer);
    return { kind: answer.authenticated ? "in" : "out" };
  } catch (cause) {
    if (!(cause instanceof ApiError)) throw cause;
    return { kind: "failed", error: cause };
  }
}

export function AccessGate({ children }: { children: ReactNode }) {
  const t = useText();
  const [access, setAccess] = useState<Access>({ kind: "asking" });
  const [token, setToken] = useState(() => setupTokenOf(location.hash));
  const mode = useStore(session)?.mode;

  const ask = () => whoIsThere().then(setAccess);

  useEffect(() => {
    void whoIsThere().then(setAccess);
    return onUnauthenticated(() => setAccess({ kind: "out" }));
  }, []);

  // The token of a one-time link is taken out of the address before anything else can keep it.
  useEffect(() => {
    if (token) history.replaceState(null, "", "#/");
  }, [token]);

  if (token && access.kind === "out") {
    return (
      <SetUp
        token={token}
        onDone={() => {
          setToken("");
          void ask();
        }}
        onLogin={() => setToken("")}
      />
    );
  }
  switch (access.kind) {
    case "asking":
      return (
        <div className="gate" role="status" aria-label={t("access.opening")}>
          <Spinner />
        </div>
      );
    case "in":
      return children;
    case "out":
      return (
        <Login
          setUp={() => setToken(" ")}
          ended={mode !== undefined && session.get()?.authenticated === true}
          onDone={ask}
        />
      );
    case "failed":
      return (
        <main className="gate">
          <div className="gate-card">
            <Mark size={40} />
            <h1>{t("access.no_answer")}</h1>
            <Problem error={access.error}>
              <Button onClick={() => void ask()}>{t("common.try_again")}</Button>
            </Problem>
          </div>
        </main>
      );
  }
}

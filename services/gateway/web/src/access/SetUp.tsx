import { useState } from "react";
import { auth } from "../api/crew";
import { ApiError } from "../api/http";
import { Button } from "../design/Button";
import { Mark, Spinner } from "../design/Icon";
import { useSentence } from "../design/Problem";
import { useText } from "../i18n";

const SHORTEST = 8;

/** The one-time token of an address such as `/#/setup/<token>`; it stays out of requests and logs there. */
export function setupTokenOf(hash: string): string {
  const match = /^#\/setup\/([^/]+)$/.exec(hash);
  try {
    return match?.[1] ? decodeURIComponent(match[1]) : "";
  } catch {
    return "";
  }
}

interface Props {
  token: string;
  onDone: () => void;
  onLogin: () => void;
}

/** The owner's password, set once with the token that the server printed. */
export function SetUp({ token, onDone, onLogin }: Props) {
  const t = useText();
  const sentence = useSentence();
  const linked = token.trim() !== "";
  const [typedToken, setTypedToken] = useState(token.trim());
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const short = password !== "" && password.length < SHORTEST;
  const differs = again !== "" && again !== password;

  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      await auth.setUp(typedToken.trim(), password);
      onDone();
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setError(sentence(cause));
    } finally {
      setBusy(false);
    }
  };

  return (
    <main className="gate">
      <form
        className="gate-card"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Mark size={40} />
        <h1>{t("setup.title")}</h1>
        <p className="muted">{t(linked ? "setup.hint" : "setup.hint_token")}</p>
        {!linked && (
          <label className="form-field">
            <span>{t("setup.token")}</span>
            <input
              className="field mono"
              autoComplete="off"
              spellCheck={false}
              required
              value={typedToken}
              onChange={(event) => setTypedToken(event.target.value)}
            />
          </label>
        )}
        <label className="form-field">
          <span>{t("setup.password")}</span>
          <input
            className="field"
            type="password"
            autoComplete="new-password"
            required
            value={password}
            onChange={(event) => setPassword(event.target.value)}
          />
          <span className={short ? "form-error" : "muted small"}>{t("setup.length", { n: SHORTEST })}</span>
        </label>
        <label className="form-field">
          <span>{t("setup.again")}</span>
          <input
            className="field"
            type="password"
            autoComplete="new-password"
            required
            value={again}
            onChange={(event) => setAgain(event.target.value)}
          />
          {differs && <span className="form-error">{t("setup.differs")}</span>}
        </label>
        {error && (
          <p className="form-error" role="alert">
            {error}
          </p>
        )}
        <Button
          type="submit"
          look="primary"
          disabled={busy || !typedToken.trim() || password.length < SHORTEST || again !== password}
        >
          {busy && <Spinner />}
          {t("setup.save")}
        </Button>
        <button type="button" className="text-button" onClick={onLogin}>
          {t("setup.has_password")}
        </button>
      </form>
    </main>
  );
}

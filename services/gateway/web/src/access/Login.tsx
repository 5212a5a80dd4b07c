import { useState } from "react";
import { auth } from "../api/crew";
import { ApiError } from "../api/http";
import { Button } from "../design/Button";
import { Mark, Spinner } from "../design/Icon";
import { useSentence } from "../design/Problem";
import { useText } from "../i18n";

interface Props {
  /** The session was valid a moment ago. */
  ended: boolean;
  setUp: () => void;
  onDone: () => Promise<void>;
}

export function Login({ ended, setUp, onDone }: Props) {
  const t = useText();
  const sentence = useSentence();
  const [password, setPassword] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);

  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      await auth.login(password);
      setPassword("");
      await onDone();
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setError(cause.status === 401 && !cause.detail ? t("access.wrong") : sentence(cause));
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
        <h1>{t("access.title")}</h1>
        <p className="muted">{t(ended ? "access.ended" : "access.hint")}</p>
        <label className="form-field">
          <span>{t("access.password")}</span>
          <input
            className="field"
            type="password"
            autoComplete="current-password"
            autoFocus
            required
            value={password}
            onChange={(event) => setPassword(event.target.value)}
          />
        </label>
        {error && (
          <p className="form-error" role="alert">
            {error}
          </p>
        )}
        <Button type="submit" look="primary" disabled={busy || password === ""}>
          {busy && <Spinner />}
          {t("access.login")}
        </Button>
        <button type="button" className="text-button" onClick={setUp}>
          {t("access.first_time")}
        </button>
      </form>
    </main>
  );
}

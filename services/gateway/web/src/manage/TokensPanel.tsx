import { useState } from "react";
import type { CreatedToken, TokenInfo } from "../api/contract";
import { auth } from "../api/crew";
import { ApiError } from "../api/http";
import { Button } from "../design/Button";
import { CopyButton } from "../design/CopyButton";
import { useSentence } from "../design/Problem";
import { Time } from "../design/Time";
import { exact } from "../format/time";
import { useLanguage, useText, type Key } from "../i18n";
import { LoadProblem, Panel } from "./Section";
import { useLoad } from "./useLoad";

const SCOPES: [string, Key][] = [
  ["read", "tokens.scope.read"],
  ["chat", "tokens.scope.chat"],
  ["approve", "tokens.scope.approve"],
  ["files", "tokens.scope.files"],
  ["manage", "tokens.scope.manage"],
];
const LIFETIMES: [string, Key][] = [
  ["30", "tokens.days_30"],
  ["90", "tokens.days_90"],
  ["365", "tokens.days_365"],
  ["", "tokens.forever"],
];

export function TokensPanel() {
  const t = useText();
  const loaded = useLoad(auth.tokens);
  const [created, setCreated] = useState<CreatedToken | null>(null);
  const [making, setMaking] = useState(false);
  return (
    <Panel title={t("tokens.title")} hint={t("tokens.hint")}>
      <LoadProblem loaded={loaded} />
      {created && (
        <div className="created-token" role="status">
          <p>{t("tokens.once")}</p>
          <div className="created-token-line">
            <code>{created.token}</code>
            <CopyButton label={t("common.copy")} text={() => created.token} />
          </div>
          <Button look="quiet" onClick={() => setCreated(null)}>
            {t("tokens.stored")}
          </Button>
        </div>
      )}
      {loaded.data && loaded.data.length > 0 && (
        <ul className="state-rows">
          {loaded.data.map((token) => (
            <TokenRow key={token.id} token={token} onDeleted={loaded.again} />
          ))}
        </ul>
      )}
      {loaded.data?.length === 0 && !making && !created && <p className="panel-empty">{t("tokens.empty")}</p>}
      {making ? (
        <TokenForm
          onCancel={() => setMaking(false)}
          onCreated={(token) => {
            setCreated(token);
            setMaking(false);
            loaded.again();
          }}
        />
      ) : (
        <Button icon="plus" onClick={() => setMaking(true)}>
          {t("tokens.new")}
        </Button>
      )}
    </Panel>
  );
}

function TokenRow({ token, onDeleted }: { token: TokenInfo; onDeleted: () => void }) {
  const t = useText();
  const language = useLanguage();
  const sentence = useSentence();
  const [sure, setSure] = useState(false);
  const [error, setError] = useState<string | null>(null);

  const remove = async () => {
    try {
      await auth.deleteToken(token.id);
      onDeleted();
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setError(sentence(cause));
    }
  };
  return (
    <li className="state-row token-row">
      <span className="state-name">{token.name}</span>
      <span className="state-note">
        {token.scopes.map((scope) => (
          <code key={scope}>{scope}</code>
        ))}
      </span>
      <span className="muted small">
        {token.last_used_at ? (
          <>
            {t("tokens.used")} <Time iso={token.last_used_at} />
          </>
        ) : (
          t("tokens.unused")
        )}
        {" · "}
        {token.expires_at
          ? t("tokens.until", { until: exact(token.expires_at, language) })
          : t("tokens.forever")}
      </span>
      <Button
        look={sure ? "danger" : "quiet"}
        icon="trash"
        aria-label={t(sure ? "tokens.delete_sure_named" : "tokens.delete_named", { name: token.name })}
        onClick={() => (sure ? void remove() : setSure(true))}
      >
        {t(sure ? "tokens.delete_sure" : "tokens.delete")}
      </Button>
      {error && (
        <p className="form-error" role="alert">
          {error}
        </p>
      )}
    </li>
  );
}

function TokenForm({
  onCancel,
  onCreated,
}: {
  onCancel: () => void;
  onCreated: (token: CreatedToken) => void;
}) {
  const t = useText();
  const sentence = useSentence();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<string[]>(["read", "chat"]);
  const [days, setDays] = useState("90");
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);

  const create = async () => {
    setBusy(true);
    setError(null);
    try {
      onCreated(await auth.createToken(name.trim(), scopes, days === "" ? null : Number(days)));
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setError(sentence(cause));
      setBusy(false);
    }
  };
  return (
    <form
      className="token-form"
      onSubmit={(event) => {
        event.preventDefault();
        void create();
      }}
    >
      <label className="form-field">
        <span>{t("tokens.name")}</span>
        <input
          className="field"
          autoFocus
          required
          maxLength={100}
          value={name}
          placeholder={t("tokens.name_example")}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <fieldset className="scopes">
        <legend>{t("tokens.scopes")}</legend>
        {SCOPES.map(([scope, words]) => (
          <label key={scope} className="scope">
            <input
              type="checkbox"
              checked={scopes.includes(scope)}
              onChange={(event) =>
                setScopes(
                  event.target.checked ? [...scopes, scope] : scopes.filter((other) => other !== scope),
                )
              }
            />
            <span>
              <code>{scope}</code> {t(words)}
            </span>
          </label>
        ))}
      </fieldset>
      <label className="form-field">
        <span>{t("tokens.lifetime")}</span>
        <select className="field select" value={days} onChange={(event) => setDays(event.target.value)}>
          {LIFETIMES.map(([value, words]) => (
            <option key={value} value={value}>
              {t(words)}
            </option>
          ))}
        </select>
      </label>
      {error && (
        <p className="form-error" role="alert">
          {error}
        </p>
      )}
      <div className="row-actions">
        <Button type="submit" look="primary" disabled={busy || !name.trim() || scopes.length === 0}>
          {t("tokens.create")}
        </Button>
        <Button look="quiet" onClick={onCancel}>
          {t("common.cancel")}
        </Button>
      </div>
    </form>
  );
}

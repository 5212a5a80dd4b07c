import { session } from "../access/AccessGate";
import { auth, system } from "../api/crew";
import { Button } from "../design/Button";
import { Segmented } from "../design/Segmented";
import { chooseLanguage, useLanguage, useText, type Key, type Language } from "../i18n";
import { readable } from "../chat/call-words";
import { useStore } from "../state/store";
import { LoadProblem, Panel, SectionHead } from "./Section";
import { SessionsPanel } from "./SessionsPanel";
import { TokensPanel } from "./TokensPanel";
import { useLoad } from "./useLoad";

const LANGUAGES: { value: Language; words: string; lang: string }[] = [
  { value: "en", words: "English", lang: "en" },
  { value: "vi", words: "Tiếng Việt", lang: "vi" },
];

const SOURCE_WORDS: Record<string, Key> = {
  env: "source.env",
  config: "source.config",
  default: "source.default",
};

export function SettingsSection() {
  const t = useText();
  const language = useLanguage();
  const who = useStore(session);
  const loaded = useLoad(system.settings);
  const { data } = loaded;
  // Tokens and sessions are the owner's own to manage, never a token's (GTW-032).
  const owner = who?.kind === "session" || who?.kind === "local";

  return (
    <div className="section">
      <SectionHead title={t("manage.settings")} hint={t("settings.hint")}>
        {who?.mode === "owner" && (
          <Button icon="logout" onClick={() => void auth.logout().finally(() => location.reload())}>
            {t("settings.logout")}
          </Button>
        )}
      </SectionHead>
      <LoadProblem loaded={loaded} />
      <Panel title={t("settings.device")}>
        <Segmented
          label={t("settings.language")}
          value={language}
          options={LANGUAGES}
          onChange={chooseLanguage}
        />
      </Panel>
      {owner && <TokensPanel />}
      {owner && who.mode === "owner" && <SessionsPanel session={who} />}
      {data && (
        <>
          <dl className="facts">
            <div>
              <dt>{t("settings.version")}</dt>
              <dd>{data.version}</dd>
            </div>
            <div>
              <dt>{t("settings.page_version")}</dt>
              <dd>{__PAGE_VERSION__}</dd>
            </div>
            <div>
              <dt>{t("settings.timezone")}</dt>
              <dd>{data.timezone}</dd>
            </div>
            <div>
              <dt>{t("settings.home")}</dt>
              <dd className="mono">{data.home}</dd>
            </div>
          </dl>
          <Panel title={t("settings.effective")} hint={t("settings.effective_hint")}>
            <div className="table-scroll" tabIndex={0} role="group" aria-label={t("settings.effective")}>
              <table className="settings-table">
                <thead>
                  <tr>
                    <th scope="col">{t("settings.key")}</th>
                    <th scope="col">{t("settings.value")}</th>
                    <th scope="col">{t("settings.source")}</th>
                  </tr>
                </thead>
                <tbody>
                  {data.settings.map((setting) => (
                    <tr key={setting.key}>
                      <th scope="row" className="mono">
                        {setting.key}
                      </th>
                      <td className="mono">{readable(setting.value)}</td>
                      <td>
                        <span className={setting.source === "default" ? "muted" : "badge badge-calm"}>
                          {SOURCE_WORDS[setting.source]
                            ? t(SOURCE_WORDS[setting.source] as Key)
                            : setting.source}
                        </span>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </Panel>
        </>
      )}
    </div>
  );
}

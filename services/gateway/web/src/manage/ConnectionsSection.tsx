import type { HostState, RouteState } from "../api/contract";
import { system } from "../api/crew";
import { Icon } from "../design/Icon";
import { Time } from "../design/Time";
import { useText, type Key } from "../i18n";
import { health, refreshHealth } from "../state/crew";
import { useStore } from "../state/store";
import { Button } from "../design/Button";
import { LoadProblem, Panel, SectionHead } from "./Section";
import { useLoad } from "./useLoad";

const SOURCE_WORDS: Record<string, Key> = {
  env: "source.env",
  config: "source.config",
  default: "source.default",
};

export function ConnectionsSection() {
  const t = useText();
  const loaded = useLoad(system.connections);
  const state = useStore(health);
  const { data } = loaded;
  return (
    <div className="section">
      <SectionHead title={t("manage.connections")} hint={t("connections.hint")}>
        <Button
          onClick={() => {
            loaded.again();
            void refreshHealth();
          }}
        >
          {t("connections.check")}
        </Button>
      </SectionHead>
      <LoadProblem loaded={loaded} />
      <Panel title={t("connections.services")}>
        {state ? (
          <ul className="state-rows">
            {state.services.map((service) => (
              <li key={service.name} className="state-row">
                <State good={service.reachable} />
                <span className="state-name">{service.name}</span>
                <span className="state-note">
                  {service.note || t(service.reachable ? "state.up" : "state.down")}
                </span>
                {service.since && <Time iso={service.since} />}
              </li>
            ))}
          </ul>
        ) : (
          <p className="panel-empty">{t("common.loading")}</p>
        )}
      </Panel>
      {data && (
        <>
          <Panel
            title={t("connections.routes")}
            hint={t("connections.routes_hint", {
              source: SOURCE_WORDS[data.routes_source]
                ? t(SOURCE_WORDS[data.routes_source] as Key)
                : data.routes_source,
            })}
          >
            {data.routes.length === 0 ? (
              <p className="panel-empty">{t("connections.no_routes")}</p>
            ) : (
              <ol className="state-rows">
                {data.routes.map((route, index) => (
                  <RouteRow
                    key={route}
                    place={index + 1}
                    route={route}
                    state={data.route_states.find((one) => one.route === route)}
                  />
                ))}
              </ol>
            )}
          </Panel>
          <Panel title={t("connections.hosts")} hint={t("connections.hosts_hint")}>
            {data.hosts.length === 0 ? (
              <p className="panel-empty">{t("connections.no_hosts")}</p>
            ) : (
              <ul className="state-rows">
                {data.hosts.map((host) => (
                  <HostRow key={host.name} host={host} />
                ))}
              </ul>
            )}
          </Panel>
          <Panel title={t("connections.keys")} hint={t("connections.keys_hint")}>
            {data.keys.length === 0 ? (
              <p className="panel-empty">{t("connections.no_keys")}</p>
            ) : (
              <ul className="state-rows">
                {data.keys.map((key) => (
                  <li key={key.name} className="state-row">
                    <span className={key.present ? "state state-good" : "state state-none"}>
                      <Icon name="key" />
                    </span>
                    <span className="state-name mono">{key.name}</span>
                    <span className="state-note">
                      {t(key.present ? "connections.key_set" : "connections.key_missing")}
                    </span>
                  </li>
                ))}
              </ul>
            )}
          </Panel>
        </>
      )}
    </div>
  );
}

function State({ good }: { good: boolean }) {
  return (
    <span className={good ? "state state-good" : "state state-bad"}>
      <Icon name={good ? "check" : "failed"} />
    </span>
  );
}

function RouteRow({ place, route, state }: { place: number; route: string; state: RouteState | undefined }) {
  const t = useText();
  const usable = state?.usable ?? true;
  return (
    <li className="state-row">
      <State good={usable} />
      <span className="state-name mono">
        <span className="state-place">{place}</span>
        {route}
      </span>
      <span className="state-note">{state?.note || t(usable ? "state.usable" : "state.unusable")}</span>
      {state?.passed_over_until && <span className="badge badge-wait">{t("connections.passed_over")}</span>}
    </li>
  );
}

/** How strongly a host keeps what it starts apart, in words; others are shown as the host says them. */
const ISOLATION: Record<string, Key> = {
  none: "isolation.none",
  os: "isolation.os",
  container: "isolation.container",
  vm: "isolation.vm",
};

function HostRow({ host }: { host: HostState }) {
  const t = useText();
  const isolation = ISOLATION[host.isolation];
  return (
    <li className="state-row state-row-tall">
      <State good={host.reachable} />
      <span className="state-name">{host.name}</span>
      <span className="state-note">{host.note || t(host.reachable ? "state.up" : "state.down")}</span>
      <div className="host-more">
        {host.isolation && (
          <p>
            <span className={host.isolation === "none" ? "badge badge-bad" : "badge badge-calm"}>
              {isolation ? t(isolation) : host.isolation}
            </span>
            {host.isolation_note && <span className="muted small"> {host.isolation_note}</span>}
          </p>
        )}
        {host.tools.length > 0 && (
          <p className="host-tools">
            {host.tools.map((tool) => (
              <code key={tool}>{tool}</code>
            ))}
          </p>
        )}
      </div>
    </li>
  );
}

import { useState } from "react";
import { runs } from "../api/crew";
import { ApiError } from "../api/http";
import { Button } from "../design/Button";
import { Problem } from "../design/Problem";
import { saveFile } from "../format/save";
import { useText } from "../i18n";
import { Panel } from "./Section";

/** The run as a file, with the reminder that it holds what the run saw (GTW-241). */
export function RunExport({ id }: { id: string }) {
  const t = useText();
  const [full, setFull] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);

  const save = async (format: "json" | "md") => {
    setBusy(true);
    setError(null);
    try {
      const answer = await runs.trajectory(id, format, full);
      saveFile(await answer.blob(), `run-${id}.${format}`);
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      setError(cause);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Panel title={t("run.export")} hint={t("run.export_hint")}>
      <div className="panel-line">
        <label className="scope">
          <input type="checkbox" checked={full} onChange={(event) => setFull(event.target.checked)} />
          <span>{t("run.export_full")}</span>
        </label>
        <span className="row-actions">
          <Button icon="download" disabled={busy} onClick={() => void save("json")}>
            {t("run.export_json")}
          </Button>
          <Button icon="download" disabled={busy} onClick={() => void save("md")}>
            {t("run.export_md")}
          </Button>
        </span>
      </div>
      {error && <Problem error={error} />}
    </Panel>
  );
}

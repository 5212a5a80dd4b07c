import { Dialog } from "../design/Dialog";
import { useText, type Key } from "../i18n";

const KEYS: [string[], Key][] = [
  [["n"], "keys.new"],
  [["/"], "keys.search"],
  [["Ctrl", "K"], "keys.search"],
  [["g", "a"], "keys.activity"],
  [["g", "p"], "keys.approvals"],
  [["g", "c"], "keys.connections"],
  [["g", "s"], "keys.settings"],
  [["g", "h"], "keys.home"],
  [["i"], "keys.composer"],
  [["Enter"], "keys.send"],
  [["Shift", "Enter"], "keys.line"],
  [["Ctrl", "Enter"], "keys.send_always"],
  [["↑"], "keys.last"],
  [["Esc"], "keys.close"],
  [["?"], "keys.sheet"],
];

export function ShortcutSheet({ onClose }: { onClose: () => void }) {
  const t = useText();
  return (
    <Dialog title={t("keys.title")} onClose={onClose}>
      <dl className="keys">
        {KEYS.map(([keys, words]) => (
          <div key={keys.join("+")}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{t(words)}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

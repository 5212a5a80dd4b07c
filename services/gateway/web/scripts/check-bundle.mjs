// Says whether ../static is what these sources build to: builds anew beside it and compares byte by byte.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const web = fileURLToPath(new URL("..", import.meta.url));
const committed = join(web, "..", "static");
const fresh = mkdtempSync(join(tmpdir(), "crew-web-"));

function files(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

try {
  await build({ root: web, logLevel: "error", build: { outDir: fresh, emptyOutDir: true } });
  const names = [...new Set([...files(fresh), ...files(committed)])].sort();
  const stale = names.filter((name) => {
    try {
      return !readFileSync(join(fresh, name)).equals(readFileSync(join(committed, name)));
    } catch {
      return true;
    }
  });
  if (stale.length > 0) {
    console.error(`services/gateway/static is stale, run "npm run build":\n  ${stale.join("\n  ")}`);
    process.exitCode = 1;
  }
} finally {
  rmSync(fresh, { recursive: true, force: true });
}

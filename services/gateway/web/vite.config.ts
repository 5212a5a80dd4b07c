import react from "@vitejs/plugin-react";
import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

// `npm run dev` proxies the API: to a running gateway, or to the scripted one of tests/e2e/web.
const api = process.env.CREW_API ?? "http://127.0.0.1:8765";

const { version } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8")) as {
  version: string;
};

export default defineConfig({
  plugins: [react()],
  define: { __PAGE_VERSION__: JSON.stringify(version) },
  build: {
    outDir: "../static",
    emptyOutDir: true,
    target: "es2022",
    // A data: URI would need a wider content policy than the gateway sends.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
  server: { proxy: { "/api": { target: api, changeOrigin: true } } },
  test: { include: ["tests/**/*.test.{ts,tsx}"], environment: "node" },
});

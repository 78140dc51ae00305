import { resolve } from "node:path";
import { defineConfig } from "vite";
import { compressed } from "./build/compressed.mts";
import { initialBudget } from "./build/initial-budget.mts";
import { submissionSchemas } from "./build/submission-schemas.mts";

const sdk = (path: string) => resolve(import.meta.dirname, "../sdk/typescript/src", path);

/** Gzipped size limit of the entry chunk and its static imports. */
const INITIAL_JS_BYTES = 235_000;

// biome-ignore lint/style/noDefaultExport: Vite reads it
export default defineConfig({
  root: import.meta.dirname,
  base: "/ui/",
  resolve: {
    alias: {
      "@forge/sdk": sdk("index.ts"),
      "#platform": sdk("platform/browser.ts"),
      "#disk": sdk("disk/browser.ts"),
    },
  },
  build: {
    outDir: resolve(import.meta.dirname, "../dist/dashboard"),
    emptyOutDir: true,
    target: "es2022",
    // Inlines no asset as a data: URL, which the content security policy allows for images only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Vite warns above this size in kB, uncompressed. `initialBudget` limits the entry chunk.
    chunkSizeWarningLimit: 1_000,
    rolldownOptions: {
      // Ignores "use client" in libraries: only server rendering uses this directive.
      checks: { moduleLevelDirective: false },
    },
  },
  worker: { format: "es" },
  plugins: [
    submissionSchemas(resolve(import.meta.dirname, "../docs/openapi.json")),
    initialBudget(INITIAL_JS_BYTES),
    compressed(),
  ],
  server: {
    // `npm run dashboard` uses the API of the stack started with `npm start`.
    proxy: { "/api": process.env.SERVICE_BASE_URL ?? "http://127.0.0.1:8080" },
  },
});

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { documentOfServer } from "../../bin/routes";
import { ARTIFACT_TYPES } from "../../core/artifacts/artifact-form";
import { manifestJsonSchema, manifestSchemaName } from "../../core/artifacts/manifest-json-schema";
import { loadConfig } from "../../platform/config/config";
import type { OpenApiDocument } from "../../platform/http/openapi";
import { createLogger } from "../../platform/logger";
import { closeContext, createContext } from "../../services/context";
import { checkoutRoot } from "../stack/paths";
import { findBreakingChanges } from "./breaking-changes";
import { filesOfJobTypes } from "./job-types/files";
import { typescriptTypes } from "./typescript-types";

/** The committed copies. Clients are written against them. */
const DOCUMENT = "docs/openapi.json";
const TYPES = "sdk/typescript/src/schema.ts";

/**
 * `npm run openapi`: compares the OpenAPI document, the manifests' schemas, the TypeScript SDK's
 * types and the generated files of job types with the committed copies, and fails if they differ.
 * `-- --write` updates the copies. Changes that break clients also need `--breaking`.
 */
async function main(flags: string[]): Promise<void> {
  const now = await currentDocument();
  const old = readFileSync(join(checkoutRoot(), DOCUMENT), "utf8");
  const breaking = findBreakingChanges(JSON.parse(old) as OpenApiDocument, now);
  for (const change of breaking) process.stderr.write(`breaking: ${change}\n`);
  if (breaking.length > 0 && !flags.includes("--breaking")) {
    throw new Error(
      "These changes break clients. If this is intended: npm run openapi -- --write --breaking",
    );
  }
  const schemas = Object.fromEntries(
    ARTIFACT_TYPES.map((type) => [manifestSchemaName(type), manifestJsonSchema(type)]),
  );
  const files = { [DOCUMENT]: now, ...inFolder("docs/schemas", schemas) };
  for (const [path, content] of Object.entries(files)) {
    refresh(path, `${JSON.stringify(content, null, 2)}\n`, flags);
  }
  const generated = { [TYPES]: typescriptTypes(now), ...filesOfJobTypes() };
  for (const [path, text] of Object.entries(generated)) refresh(path, text, flags);
}

const inFolder = (folder: string, files: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(files).map(([name, file]) => [`${folder}/${name}`, file]));

function refresh(name: string, text: string, flags: string[]): void {
  const path = join(checkoutRoot(), name);
  if (existsSync(path) && readFileSync(path, "utf8") === text) return;
  if (!flags.includes("--write")) {
    throw new Error(`${name} does not match the code; run: npm run openapi -- --write`);
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  process.stderr.write(`wrote ${name}\n`);
}

/** Builds the document from the routes of a server. Connects to nothing. */
async function currentDocument(): Promise<OpenApiDocument> {
  const { config } = loadConfig({});
  const ctx = createContext(config, createLogger("silent"));
  const document = documentOfServer(ctx);
  await closeContext(ctx);
  return JSON.parse(JSON.stringify(document)) as OpenApiDocument;
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { documentOfServer } from "../../bin/routes";
import { ARTIFACT_TYPES } from "../../core/artifacts/artifacts";
import { manifestJsonSchema, manifestSchemaName } from "../../core/artifacts/manifest-json-schema";
import { loadConfig } from "../../platform/config/config";
import type { OpenApiDocument } from "../../platform/http/openapi";
import { createLogger } from "../../platform/logger";
import { closeContext, createContext } from "../../services/context";
import { checkoutRoot } from "../stack/paths";
import { findBreakingChanges } from "./breaking-changes";
import { typescriptTypes } from "./typescript-types";

/** The committed copies: what clients were written for. */
const DOCUMENT = "docs/openapi.json";
const TYPES = "sdk/typescript/src/schema.ts";

/**
 * `npm run openapi`: says what has changed against the committed copies, of the document, the
 * manifests' schemas and the TypeScript SDK's types, and fails if anything has. `-- --write` writes
 * them anew; where that would break clients, only with `--breaking` beside it.
 */
async function main(flags: string[]): Promise<void> {
  const now = await currentDocument();
  const old = readFileSync(join(checkoutRoot(), DOCUMENT), "utf8");
  const breaking = findBreakingChanges(JSON.parse(old) as OpenApiDocument, now);
  for (const change of breaking) process.stderr.write(`breaking: ${change}\n`);
  if (breaking.length > 0 && !flags.includes("--breaking")) {
    throw new Error(
      "These changes break clients. If that is meant: npm run openapi -- --write --breaking",
    );
  }
  const schemas = Object.fromEntries(
    ARTIFACT_TYPES.map((type) => [manifestSchemaName(type), manifestJsonSchema(type)]),
  );
  const files = { [DOCUMENT]: now, ...inFolder("docs/schemas", schemas) };
  for (const [path, content] of Object.entries(files)) {
    refresh(path, `${JSON.stringify(content, null, 2)}\n`, flags);
  }
  refresh(TYPES, typescriptTypes(now), flags);
}

const inFolder = (folder: string, files: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(files).map(([name, file]) => [`${folder}/${name}`, file]));

function refresh(name: string, text: string, flags: string[]): void {
  const path = join(checkoutRoot(), name);
  if (existsSync(path) && readFileSync(path, "utf8") === text) return;
  if (!flags.includes("--write")) {
    throw new Error(`${name} is not what the code says: npm run openapi -- --write`);
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  process.stderr.write(`${name} is written anew\n`);
}

/** From the routes as a server would serve them; nothing is connected to. */
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

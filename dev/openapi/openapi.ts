import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { documentOfServer } from "../../bin/routes";
import { loadConfig } from "../../infra/config";
import { closeContext, createContext } from "../../infra/context";
import type { OpenApiDocument } from "../../infra/http/openapi";
import { createLogger } from "../../infra/logger";
import { checkoutRoot } from "../stack/paths";
import { findBreakingChanges } from "./breaking-changes";

/** The committed copy: what clients were written for. */
const COPY = join(checkoutRoot(), "docs", "openapi.json");

/**
 * `npm run openapi`: says what has changed against the committed copy, and fails if anything has.
 * `-- --write` writes the copy anew; where that would break clients, only with `--breaking` beside it.
 */
async function main(flags: string[]): Promise<void> {
  const now = await currentDocument();
  const text = `${JSON.stringify(now, null, 2)}\n`;
  const old = readFileSync(COPY, "utf8");
  const breaking = findBreakingChanges(JSON.parse(old) as OpenApiDocument, now);
  for (const change of breaking) process.stderr.write(`breaking: ${change}\n`);
  if (breaking.length > 0 && !flags.includes("--breaking")) {
    throw new Error(
      "These changes break clients. If that is meant: npm run openapi -- --write --breaking",
    );
  }
  if (text === old) return;
  if (!flags.includes("--write")) {
    throw new Error(
      "docs/openapi.json is not the document of these routes: npm run openapi -- --write",
    );
  }
  writeFileSync(COPY, text);
  process.stderr.write("docs/openapi.json is written anew\n");
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

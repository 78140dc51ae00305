import { readFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../platform/config/config";
import { createLogger } from "../platform/logger";
import { closeContext, createContext } from "../services/context";
import { checkInvariants } from "./invariants";

/** Points the configuration at the running local stack, unless FORGE_DATABASE_URL is set. */
function environment(): NodeJS.ProcessEnv {
  if (process.env.FORGE_DATABASE_URL) return process.env;
  const file = join(process.env.FORGE_HOME ?? ".forge", "stack.json");
  const stack = JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
  return {
    ...process.env,
    FORGE_DATABASE_URL: stack.postgres_url,
    TEMPORAL_ADDRESS: stack.temporal_address,
  };
}

/** `npm run check-invariants`: prints each violation and exits 1 if there are any. */
async function main(): Promise<void> {
  const { config } = loadConfig(environment());
  const ctx = createContext(config, createLogger("warn"));
  try {
    const violations = await checkInvariants(ctx);
    for (const violation of violations) process.stdout.write(`${violation}\n`);
    process.stdout.write(violations.length === 0 ? "I1-I7 hold\n" : "");
    process.exitCode = violations.length === 0 ? 0 : 1;
  } finally {
    await closeContext(ctx);
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});

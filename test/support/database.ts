import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saySilently } from "../../dev/stack/say";
import { Stack } from "../../dev/stack/stack";
import { loadConfig } from "../../infra/config";
import { type Context, closeContext, createContext } from "../../infra/context";
import { createLogger } from "../../infra/logger";
import { takePlace } from "./servers";

export interface Database {
  ctx: Context;
  databaseUrl: string;
  stop(): Promise<void>;
}

/** A migrated database without a forge-server, for tests of SQL statements that a server would interfere with. */
export async function openDatabase(env: Record<string, string> = {}): Promise<Database> {
  const home = mkdtempSync(join(tmpdir(), "forge-test-"));
  const place = await takePlace(["temporal"]);
  const stack = new Stack({ home, say: saySilently, given: place.given });
  const end = async (): Promise<void> => {
    await stack.stop();
    try {
      await place.remove();
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  };
  try {
    await stack.startDatabase();
  } catch (error) {
    await end();
    throw error;
  }
  const { databaseUrl } = stack;
  const { config } = loadConfig({
    ...env,
    FORGE_STORE_DIR: stack.storeDir,
    FORGE_DATABASE_URL: databaseUrl,
  });
  const ctx = createContext(config, createLogger("silent"));
  await ctx.store.check();
  return {
    ctx,
    databaseUrl,
    async stop() {
      await closeContext(ctx);
      await end();
    },
  };
}

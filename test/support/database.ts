import { loadConfig } from "../../platform/config/config";
import { createLogger } from "../../platform/logger";
import { type Context, closeContext, createContext } from "../../services/context";
import { startTestStack } from "./test-stack";

export interface Database {
  ctx: Context;
  databaseUrl: string;
  stop(): Promise<void>;
}

/**
 * A migrated database without a forge-server, for tests of SQL statements that a server would
 * disturb.
 */
export async function openDatabase(env: Record<string, string> = {}): Promise<Database> {
  const { stack, end } = await startTestStack({ own: ["temporal"] }, (started) =>
    started.startDatabase(),
  );
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

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiClient } from "../../dev/api-client";
import { checkInvariants } from "../../dev/invariants";
import { saySilently } from "../../dev/stack/say";
import { Stack } from "../../dev/stack/stack";
import { waitFor } from "../../dev/stack/wait";
import { loadConfig } from "../../infra/config";
import { type Context, closeContext, createContext } from "../../infra/context";
import { all, execute } from "../../infra/database/pool";
import { createLogger } from "../../infra/logger";
import { TestWorker } from "./test-worker";

export interface Forge {
  stack: Stack;
  /** As the ordinary user of stack.json. */
  user: ApiClient;
  admin: ApiClient;
  /** The database and Temporal, for looking and for standing in the way. */
  ctx: Context;
  /** A registered worker of the user, spoken for by the test over HTTP. */
  worker(id: string, gpu?: { name: string; memory_gb: number }): Promise<TestWorker>;
  /** Throws with every violated invariant. */
  proveInvariants(): Promise<void>;
  /** After a test: proves the invariants, and keeps its workers from taking the next one's jobs. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

/** A whole stack of its own for one test file: real Postgres, real Temporal, real forge-server. */
export async function startForge(
  env: Record<string, string> = {},
  options: { split?: boolean } = {},
): Promise<Forge> {
  const home = mkdtempSync(join(tmpdir(), "forge-test-"));
  const stack = new Stack({ home, agents: 0, env, say: saySilently, ...options });
  try {
    await stack.start();
  } catch (error) {
    await stack.stop();
    throw error;
  }
  const { config } = loadConfig({
    ...env,
    FORGE_STORE_DIR: stack.storeDir,
    FORGE_DATABASE_URL: stack.databaseUrl,
    TEMPORAL_ADDRESS: stack.temporalAddress,
  });
  const ctx = createContext(config, createLogger("silent"));
  const workerApi = (): ApiClient => new ApiClient(stack.apiUrl, stack.keys.workerKey);
  const proveInvariants = async (): Promise<void> => {
    // A cancelled job has ended before its workflow knows.
    await waitFor("nothing to be owed", async () => {
      return (await all(ctx.pool, "select from outbox")).length === 0;
    });
    const violations = await checkInvariants(ctx);
    if (violations.length > 0) throw new Error(`violated:\n${violations.join("\n")}`);
  };
  return {
    stack,
    user: new ApiClient(stack.apiUrl, stack.keys.userKey),
    admin: new ApiClient(stack.apiUrl, stack.keys.adminKey),
    ctx,
    async worker(id, gpu = { name: "cpu", memory_gb: 0 }) {
      const worker = new TestWorker(workerApi(), id);
      await worker.register(gpu);
      return worker;
    },
    proveInvariants,
    async settle() {
      await proveInvariants();
      await execute(ctx.pool, "update workers set available_until = null");
    },
    async stop() {
      await closeContext(ctx);
      await stack.stop();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

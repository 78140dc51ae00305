import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiClient } from "../../dev/api-client";
import { checkInvariants } from "../../dev/invariants";
import type { ManagedProcess } from "../../dev/stack/process";
import { saySilently } from "../../dev/stack/say";
import { Stack } from "../../dev/stack/stack";
import { waitFor } from "../../dev/stack/wait";
import { loadConfig } from "../../infra/config";
import { type Context, closeContext, createContext } from "../../infra/context";
import { all, execute } from "../../infra/database/pool";
import { createLogger } from "../../infra/logger";
import { keepLogs, openWorkflows } from "./evidence";
import { type Server, takePlace } from "./servers";
import { TestWorker } from "./test-worker";

export interface Forge {
  stack: Stack;
  /** The file's own server, to kill and freeze. @throws where the file shares it: `own` asks for one. */
  own(server: Server): ManagedProcess;
  /** As the ordinary user of stack.json. */
  user: ApiClient;
  admin: ApiClient;
  /** The database and Temporal, for looking and for standing in the way. */
  ctx: Context;
  /** A registered worker of the user, spoken for by the test over HTTP. */
  worker(id: string, gpu?: { name: string; memory_gb: number }): Promise<TestWorker>;
  /** Throws with every violated invariant. Compares every workflow with its job. */
  proveInvariants(): Promise<void>;
  /**
   * After a test: proves the invariants, of workflows those that closed since the last test, and keeps its
   * workers from taking the next one's jobs.
   */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

/** Leases are short so that other processes soon take over the work of a killed one. */
const DEFAULTS = {
  // A test's worker that sends no heartbeats must not die on a busy machine before its file has ended.
  FORGE_HEARTBEAT_TIMEOUT_S: "600",
  FORGE_OUTBOX_LEASE_S: "2",
  FORGE_OUTBOX_FIRST_LEASE_S: "1",
  FORGE_TEMPORAL_STICKY_S: "2",
};

/** New objects are collected less often: a start takes a tenth less CPU time, and there are 120 in a run. */
const FAST_START = ["--min-semi-space-size=16"];

export interface ForgeOptions {
  /** The Temporal worker is a process of its own. */
  split?: boolean;
  /** Servers that the file stops, kills or freezes, and so can't share. */
  own?: Server[];
}

/** A forge-server for one test file, on a real Postgres and a real Temporal. */
export async function startForge(
  given: Record<string, string> = {},
  { split = false, own = [] }: ForgeOptions = {},
): Promise<Forge> {
  const home = mkdtempSync(join(tmpdir(), "forge-test-"));
  const place = await takePlace(own);
  const env = { ...DEFAULTS, ...place.env, ...given };
  const { given: servers } = place;
  const stack = new Stack({
    ...{ home, agents: 0, env, split, say: saySilently, given: servers },
    nodeOptions: FAST_START,
  });
  const end = async (): Promise<void> => {
    await stack.stop();
    keepLogs(home);
    try {
      await place.remove();
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  };
  try {
    await stack.start();
  } catch (error) {
    await end();
    throw error;
  }
  const { config } = loadConfig({
    ...env,
    // Each connection is a process of Postgres, and tests need few at once.
    FORGE_DATABASE_POOL: "6",
    FORGE_STORE_DIR: stack.storeDir,
    FORGE_DATABASE_URL: stack.databaseUrl,
    TEMPORAL_ADDRESS: stack.temporalAddress,
  });
  const ctx = createContext(config, createLogger("silent"));
  const workerApi = (): ApiClient => new ApiClient(stack.apiUrl, stack.keys.workerKey);
  const closed = new Set<string>();
  const prove = async (known?: Set<string>): Promise<void> => {
    // A cancelled job has ended before its workflow knows.
    await waitFor("nothing to be owed", async () => {
      return (await all(ctx.pool, "select from outbox")).length === 0;
    });
    const violations = await checkInvariants(ctx, known);
    if (violations.length === 0) return;
    const open = await openWorkflows(ctx).catch((error: unknown) => [String(error)]);
    throw new Error(["violated:", ...violations, ...open].join("\n"));
  };
  return {
    stack,
    own(server) {
      const found = stack[server];
      if (found) return found;
      throw new Error(`this file shares ${server}: startForge(…, { own: ["${server}"] })`);
    },
    user: new ApiClient(stack.apiUrl, stack.keys.userKey),
    admin: new ApiClient(stack.apiUrl, stack.keys.adminKey),
    ctx,
    async worker(id, gpu = { name: "cpu", memory_gb: 0 }) {
      const worker = new TestWorker(workerApi(), id);
      await worker.register(gpu);
      return worker;
    },
    proveInvariants: () => prove(),
    async settle() {
      await prove(closed);
      await execute(ctx.pool, "update workers set available_until = null");
    },
    async stop() {
      await closeContext(ctx);
      await end();
    },
  };
}

import { ApiClient } from "../../dev/api-client";
import { checkInvariants } from "../../dev/invariants";
import type { ManagedProcess } from "../../dev/stack/process";
import type { Stack } from "../../dev/stack/stack";
import { waitFor } from "../../dev/stack/wait";
import { SHORT_LIVED } from "../../dev/test/node-options";
import { loadConfig } from "../../platform/config/config";
import { createLogger } from "../../platform/logger";
import { all, execute } from "../../platform/postgres/pool";
import { type Context, closeContext, createContext } from "../../services/context";
import { openWorkflows } from "./evidence";
import type { Server } from "./servers";
import { startTestStack } from "./test-stack";
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
  /** Its processes, whatever their role. */
  servers(): ManagedProcess[];
  /** Meanwhile none of them is there: the first is killed and started again, the others are frozen. */
  withoutServers(work: () => Promise<unknown>): Promise<void>;
  /** Throws with every violated invariant. Compares every workflow with its job. */
  proveInvariants(): Promise<void>;
  /**
   * After a test: proves the invariants, of workflows those that closed since the last test, and keeps its
   * workers from taking the next one's jobs.
   */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Debts; and jobs that Temporal is to end yet: for a workflow that was started with its attempt's end known,
 * nothing is owed, and where Temporal is slow it may take seconds to begin.
 */
const UNDER_WAY = `
  select job_id from outbox
  union all
  select job_id from jobs j where status not in ('completed', 'failed') and 'ended' = (
    select state from attempts a where a.job_id = j.job_id order by attempt desc limit 1)`;

/** Leases are short so that other processes soon take over the work of a killed one. */
const DEFAULTS = {
  // A test's worker that sends no heartbeats must not die on a busy machine before its file has ended.
  FORGE_HEARTBEAT_TIMEOUT_S: "600",
  // Tests run jobs out of time right after the server came up.
  FORGE_DEADLINE_GRACE_S: "1",
  // In a file with several workers each job goes to the one that the test lets ask.
  FORGE_OFFER_S: "0",
  FORGE_OUTBOX_LEASE_S: "2",
  FORGE_OUTBOX_FIRST_LEASE_S: "1",
  FORGE_TEMPORAL_STICKY_S: "2",
  FORGE_TEMPORAL_TASK_S: "3",
};

export interface ForgeOptions {
  /** The Temporal worker is a process of its own. */
  split?: boolean;
  /** Servers that the file stops, kills or freezes, and so can't share. */
  own?: Server[];
}

/**
 * Two processes that serve the API and two Temporal workers, for every file: users speak to the first one,
 * workers to the second (`npm run test:doubled`).
 */
const IS_DOUBLED = process.env.TEST_DOUBLED === "true";

/** A forge-server for one test file, on a real Postgres and a real Temporal. */
export async function startForge(
  given: Record<string, string> = {},
  { split = false, own = [] }: ForgeOptions = {},
): Promise<Forge> {
  const isSplit = split || IS_DOUBLED;
  let workerUrl: string | undefined;
  const { stack, env, end } = await startTestStack(
    {
      own: isSplit ? [...own, "server"] : own,
      split: isSplit,
      env: { ...DEFAULTS, ...given },
      nodeOptions: SHORT_LIVED,
    },
    async (started) => {
      await started.start();
      if (!IS_DOUBLED) return;
      workerUrl = await started.startAnotherServer("api");
      await started.startAnotherServer("worker");
    },
  );
  const { config } = loadConfig({
    ...env,
    // Each connection is a process of Postgres, and tests need few at once.
    FORGE_DATABASE_POOL: "6",
    FORGE_STORE_DIR: stack.storeDir,
    FORGE_DATABASE_URL: stack.databaseUrl,
    TEMPORAL_ADDRESS: stack.temporalAddress,
  });
  const ctx = createContext(config, createLogger("silent"));
  const workerApi = (): ApiClient => new ApiClient(workerUrl ?? stack.apiUrl, stack.keys.workerKey);
  const closed = new Set<string>();
  const prove = async (known?: Set<string>): Promise<void> => {
    // A cancelled job has ended before its workflow knows.
    await waitFor("nothing to be owed, and no job to be finalising", async () => {
      return (await all(ctx.pool, UNDER_WAY)).length === 0;
    });
    const violations = await checkInvariants(ctx, known);
    if (violations.length === 0) return;
    const open = await openWorkflows(ctx).catch((error: unknown) => [String(error)]);
    throw new Error(["violated:", ...violations, ...open].join("\n"));
  };
  const servers = (): ManagedProcess[] =>
    [stack.server, stack.temporalWorker, ...stack.otherServers].filter((one) => one !== undefined);
  return {
    stack,
    servers,
    async withoutServers(work) {
      const others = servers().slice(1);
      for (const other of others) other.signal("SIGSTOP");
      await stack.server?.kill();
      try {
        await work();
      } finally {
        await stack.startServer();
        for (const other of others) other.signal("SIGCONT");
      }
    },
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

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
  /**
   * Returns a server that no other test file uses, so that a test may kill or freeze it. @throws if
   * other test files use the server, too. In this case, add the server to the option `own`.
   */
  own(server: Server): ManagedProcess;
  /** The ordinary user of stack.json. */
  user: ApiClient;
  admin: ApiClient;
  /** Direct access to the database and Temporal, to inspect and to interfere. */
  ctx: Context;
  /** Registers a worker of the user, which the test drives over HTTP. */
  worker(id: string, gpu?: { name: string; memory_gb: number }): Promise<TestWorker>;
  /** The processes of forge-server, in any role. */
  servers(): ManagedProcess[];
  /**
   * Runs `work` while no server runs: kills the first server and freezes the others. Afterwards,
   * starts the first server again, and lets the others continue.
   */
  withoutServers(work: () => Promise<unknown>): Promise<void>;
  /** Throws an error that lists every violated invariant. Compares every workflow with its job. */
  proveInvariants(): Promise<void>;
  /**
   * Call after each test. Proves the invariants, and then makes all workers unavailable, so that
   * none of them gets a job of the next test. Once a call has found a workflow closed with its
   * job's status, later calls do not check this workflow again.
   */
  endTest(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Jobs whose workflow still has work to do:
 * - Jobs with an outbox entry.
 * - Unfinished jobs whose last attempt has ended. Such a job may have no outbox entry: if the
 *   attempt ended before the workflow was started, the call that starts the workflow also counts
 *   as the delivery of the outcome. The workflow then reads the outcome from the database, which
 *   can take several seconds if Temporal is slow.
 */
const JOBS_WITH_PENDING_WORK = `
  select job_id from outbox
  union all
  select job_id from jobs j where status not in ('completed', 'failed') and 'ended' = (
    select state from attempts a where a.job_id = j.job_id order by attempt desc limit 1)`;

/**
 * The default settings of the test's server. The leases of the outbox and the time-outs of Temporal
 * are short, so that other processes soon take over the work of a killed process.
 */
const DEFAULTS = {
  // Many test workers send no heartbeats. Forge must not mark a worker dead while its test file
  // runs. On a busy machine, a test file runs for minutes.
  FORGE_HEARTBEAT_TIMEOUT_S: "600",
  // By default no job times out in a server's first minute. Tests need time-outs at once.
  FORGE_DEADLINE_GRACE_S: "1",
  // Assign jobs only to workers that poll. By default, Forge may also assign a job to a worker that
  // recently registered or delivered a result. In a test with several workers, the wrong worker
  // could then get the job.
  FORGE_OFFER_S: "0",
  FORGE_OUTBOX_LEASE_S: "2",
  FORGE_OUTBOX_FIRST_LEASE_S: "1",
  FORGE_TEMPORAL_STICKY_S: "2",
  FORGE_TEMPORAL_TASK_S: "3",
};

export interface ForgeOptions {
  /** Runs the Temporal worker as a separate process. */
  split?: boolean;
  /**
   * Servers that the test file stops, kills or freezes. It does not share them with other files.
   */
  own?: Server[];
  /**
   * Runs the server in a process of its own, with the optimizing compiler, like production. For
   * files that measure time.
   */
  optimized?: boolean;
}

/**
 * Whether every file runs with two API processes and two Temporal workers (`npm run test:doubled`).
 * Users call the first API process, and workers the second one.
 */
const IS_DOUBLED = process.env.TEST_DOUBLED === "true";

/** A forge-server for one test file, on a real Postgres and a real Temporal. */
export async function startForge(
  given: Record<string, string> = {},
  { split = false, own = [], optimized = false }: ForgeOptions = {},
): Promise<Forge> {
  const isSplit = split || IS_DOUBLED;
  let workerUrl: string | undefined;
  const { stack, env, end } = await startTestStack(
    {
      own: isSplit || optimized ? [...own, "server"] : own,
      split: isSplit,
      env: { ...DEFAULTS, ...given },
      nodeOptions: optimized ? [] : SHORT_LIVED,
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
    // Each connection is a process of Postgres, and tests need only a few.
    FORGE_DATABASE_POOL: "6",
    FORGE_STORE_DIR: stack.storeDir,
    FORGE_DATABASE_URL: stack.databaseUrl,
    TEMPORAL_ADDRESS: stack.temporalAddress,
  });
  const ctx = createContext(config, createLogger("silent"));
  const workerApi = (): ApiClient => new ApiClient(workerUrl ?? stack.apiUrl, stack.keys.workerKey);
  const closed = new Set<string>();
  const prove = async (known?: Set<string>): Promise<void> => {
    // A cancelled job ends in the database before its workflow learns of it, so wait for the
    // delivery of its outcome.
    await waitFor("the outbox to be empty, and no job to be finalising", async () => {
      return (await all(ctx.pool, JOBS_WITH_PENDING_WORK)).length === 0;
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
    async endTest() {
      await prove(closed);
      await execute(ctx.pool, "update workers set available_until = null");
    },
    async stop() {
      await closeContext(ctx);
      await end();
    },
  };
}
